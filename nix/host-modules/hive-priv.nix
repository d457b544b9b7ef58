# The root helper: started by its socket, in a sandbox. The same as packaging/systemd/hive-priv.{socket,service}.
{ config, lib, ... }:
let
  cfg = config.services.hyperhive;
in
{
  config = lib.mkIf cfg.deploy.hive-controller.enable {
    systemd.sockets.hive-priv = {
      description = "Socket of the hive's root helper";
      wantedBy = [ "sockets.target" ];
      socketConfig = {
        ListenStream = "/run/hive/priv.sock";
        SocketUser = "root";
        # Made by the module of the hive's daemon.
        SocketGroup = "hive-core";
        SocketMode = "0660";
        DirectoryMode = "0755";
        Backlog = 16;
        Accept = false;
        RemoveOnStop = true;
      };
    };

    systemd.services.hive-priv = {
      description = "Root helper of the hive: container flags, salvage of old roots";
      requires = [ "hive-priv.socket" ];
      after = [ "hive-priv.socket" ];
      # A switch under way is not cut off by a rebuild; the socket starts the new one.
      stopIfChanged = false;
      serviceConfig = {
        Type = "notify";
        ExecStart = "${cfg.c0re.package}/bin/hive-priv serve";
        TimeoutStopSec = 120;
        UMask = "0077";
        StateDirectory = "hive-priv";
        StateDirectoryMode = "0700";
        CapabilityBoundingSet = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID";
        AmbientCapabilities = "";
        NoNewPrivileges = true;
        ProtectSystem = "strict";
        ReadWritePaths = [
          "/etc/nixos-containers"
          "/var/lib/nixos-containers"
          "/var/lib/hyperhive/agents"
          "-/nix/var/nix/profiles/per-container"
          "-/var/log/journal"
        ];
        ProtectHome = true;
        PrivateTmp = true;
        PrivateDevices = true;
        PrivateNetwork = true;
        ProtectClock = true;
        ProtectControlGroups = true;
        ProtectHostname = true;
        ProtectKernelLogs = true;
        ProtectKernelModules = true;
        ProtectKernelTunables = true;
        ProtectProc = "invisible";
        RemoveIPC = true;
        IPAddressDeny = "any";
        RestrictAddressFamilies = "AF_UNIX";
        RestrictNamespaces = true;
        RestrictRealtime = true;
        # Not RestrictSUIDSGID: its filter takes openat2 away.
        LockPersonality = true;
        MemoryDenyWriteExecute = true;
        DevicePolicy = "closed";
        SystemCallArchitectures = "native";
        SystemCallFilter = [
          "@system-service"
          "~@resources @privileged"
          "@chown"
        ];
        SystemCallErrorNumber = "EPERM";
        MemoryMax = "256M";
        TasksMax = 32;
        LimitCORE = 0;
      };
    };

    systemd.tmpfiles.rules = [
      "d /etc/nixos-containers 0755 root root - -"
      "d /var/lib/nixos-containers 0700 root root - -"
      "d /var/lib/hyperhive 0700 root root - -"
      "d /var/lib/hyperhive/agents 0700 root root - -"
    ];
  };
}
