# What a guest planted in its root must not be met by the host's root. A drop-in of the template, from a package: a
# declared container has a unit of its own, which a setting of "container@" would not reach.
{
  config,
  lib,
  pkgs,
  ...
}:
let
  cfg = config.services.hyperhive;
in
{
  config = lib.mkIf cfg.deploy.hive-controller.enable {
    systemd.packages = [
      (pkgs.writeTextDir "lib/systemd/system/container@.service.d/50-hive-check-rootfs.conf" ''
        [Service]
        ExecStartPre=${cfg.c0re.package}/bin/hive-priv check-rootfs %i
      '')
    ];
  };
}
