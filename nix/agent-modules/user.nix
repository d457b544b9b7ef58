# Of a container: the agent's user. Its uid is pinned, because the owner of its files on the host must not change when
# the container is made anew; its nix profile is a link to the host's per-container profiles, which outlive the root.
{ config, lib, ... }:
let
  cfg = config.services.hyperhive.agent.user;
  home = "/home/${cfg.name}";
  profiles = "/nix/var/nix/profiles/per-user/${cfg.name}";
in
{
  options.services.hyperhive.agent.user = {
    name = lib.mkOption {
      type = lib.types.strMatching "[a-z0-9]([a-z0-9-]{0,7}[a-z0-9])?";
      description = "The agent; its container is h-NAME.";
    };
    uid = lib.mkOption {
      type = lib.types.ints.between 1000 65533;
      default = 1000;
      description = "The uid of its user, inside and on the host's folders.";
    };
  };

  config = {
    users.users.${cfg.name} = {
      isNormalUser = true;
      uid = cfg.uid;
      inherit home;
    };
    # Where nix keeps a user's profile; with a link, what is installed lands on the host.
    systemd.tmpfiles.rules = [
      "d ${profiles} 0755 ${cfg.name} users - -"
      "d ${home}/.local 0755 ${cfg.name} users - -"
      "d ${home}/.local/state 0755 ${cfg.name} users - -"
      "L ${home}/.local/state/nix - - - - ${profiles}"
    ];
    environment.extraInit = ''
      export PATH="$PATH:${profiles}/profiles/profile/bin"
    '';
  };
}
