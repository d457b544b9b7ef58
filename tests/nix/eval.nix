# Evaluates the modules of nix/ against the few functions of nixpkgs that they use, stood in here, and gives what they
# set. What only nixpkgs knows, such as whether an option exists, is not held.
let
  lib = {
    mkIf = condition: content: if condition then content else { };
    mkOption = option: option;
    types = {
      strMatching = pattern: { inherit pattern; };
      ints.between = low: high: { inherit low high; };
    };
  };
  pkgs.writeTextDir = path: text: { inherit path text; };
  hive = enable: {
    services.hyperhive = {
      c0re.package = "/package";
      deploy.hive-controller = { inherit enable; };
      swarm.forge.domain = "forge.t.local";
    };
  };
  load = file: config: (import file { inherit lib pkgs config; });
  priv = enable: (load ../../nix/host-modules/hive-priv.nix (hive enable)).config;
  check = enable: (load ../../nix/host-modules/container-rootfs-check.nix (hive enable)).config;
  user = load ../../nix/agent-modules/user.nix {
    services.hyperhive.agent.user = {
      name = "iris";
      uid = 1000;
    };
  };
  dropIn = builtins.head (check true).systemd.packages;
  service = (priv true).systemd.services.hive-priv.serviceConfig;
in
{
  off = priv false == { } && check false == { };
  listen = (priv true).systemd.sockets.hive-priv.socketConfig.ListenStream;
  mode = (priv true).systemd.sockets.hive-priv.socketConfig.SocketMode;
  group = (priv true).systemd.sockets.hive-priv.socketConfig.SocketGroup;
  start = service.ExecStart;
  # As lines of a unit, to be held against packaging/systemd.
  settings = builtins.concatStringsSep "\n" (
    builtins.map (
      key:
      let
        value = service.${key};
        text =
          item:
          if item == true then
            "yes"
          else if item == false then
            "no"
          else
            builtins.toString item;
      in
      "${key}=${if builtins.isList value then builtins.concatStringsSep " " value else text value}"
    ) (builtins.attrNames service)
  );
  dropInPath = dropIn.path;
  dropInText = dropIn.text;
  uid = user.config.users.users.iris.uid;
  link = builtins.elemAt user.config.systemd.tmpfiles.rules 3;
}
