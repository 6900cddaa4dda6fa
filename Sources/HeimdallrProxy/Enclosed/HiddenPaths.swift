import Administration
import Configuration
import Enclosure
import FileSystem

/// What an enclosed program may not see: the proxy's secrets and sockets, and sockets of services that start programs
/// outside or look up names there.
enum HiddenPaths {
    /// Sockets of container engines, message buses, service managers and name services.
    private static let services = [
        "/run/docker.sock", "/run/containerd/containerd.sock", "/run/containerd/containerd.sock.ttrpc",
        "/run/podman/podman.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock", "/run/snapd.socket",
        "/run/snapd-snap.socket", "/run/libvirt/libvirt-sock", "/run/incus/unix.socket", "/run/lxd.socket",
        "/var/lib/incus/unix.socket", "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket",
        "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/io.system.ManagedOOM",
        "/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve",
        "/run/systemd/resolve/io.systemd.Resolve.Monitor", "/run/avahi-daemon/socket", "{home}/.docker/run/docker.sock",
        "{home}/.docker/desktop/docker.sock", "{home}/.colima/default/docker.sock",
    ]
    /// Folders that many programs share, which some environments name as the user's own.
    private static let shared: Set<String> = ["", "/", "/tmp", "/run", "/var/run", "/var/tmp", "/dev/shm"]

    /// - Parameters:
    ///   - file: the configuration's file.
    ///   - trust: folder of the trust files, which stays visible.
    static func mounts(
        _ settings: Configuration, file: String?, environment: [String: String], trust: String?
    ) -> EnclosureMounts {
        var mounts = EnclosureMounts()
        mounts.shown = [trust].compactMap(\.self)
        let home = environment["HOME"] ?? "/nonexistent"
        mounts.hiddenFiles = services.map { $0.hasPrefix("{home}") ? home + $0.dropFirst(6) : $0 }
        mounts.hiddenFiles += settings.allSecrets.compactMap(\.path)
        mounts.hiddenFiles += settings.upstreams.compactMap(\.tls.keyFile) + settings.clients.compactMap(\.tls.keyFile)
        // It may hold secrets, and a program that could write it would change what the proxy does at the next reload.
        if let file { mounts.hiddenFiles.append(file) }
        // The folder of one user comes and goes with its sessions, which would uncover it.
        mounts.hiddenFolders = ["/run/user"]
        if case .file(let directory, _) = settings.store { mounts.hiddenFolders.append(directory) }
        if let directory = settings.interception?.store?.directory { mounts.hiddenFolders.append(directory) }
        // The folders that are the proxies' or the user's alone. Another one may be the program's, too. One that is not there
        // can't be covered, and a proxy that starts later would make it.
        FileSystem.makeFolder(AdminSocket.ownFolder, mode: 0o700)
        for socket in AdminSocket.candidates(port: 0, runtimeDirectory: environment["XDG_RUNTIME_DIR"]) {
            mounts.hiddenFolders.append(socket.split(separator: "/").dropLast().map { "/\($0)" }.joined())
        }
        if let folder = environment["XDG_RUNTIME_DIR"], !shared.contains(folder), folder != home {
            mounts.hiddenFolders.append(folder)
        }
        if let socket = settings.admin?.socket {
            mounts.hiddenFiles += [socket, EnclosureService.path(beside: socket)]
        }
        if let address = environment["DBUS_SESSION_BUS_ADDRESS"], address.hasPrefix("unix:path=") {
            mounts.hiddenFiles.append(String(address.dropFirst(10).prefix { $0 != "," && $0 != ";" }))
        }
        mounts.hiddenFiles = unique(mounts.hiddenFiles)
        mounts.hiddenFolders = unique(mounts.hiddenFolders)
        return mounts
    }

    /// Each path once, from the root on: the process inside may have another working folder.
    private static func unique(_ paths: [String]) -> [String] {
        var known: Set<String> = []
        return paths.filter { !$0.isEmpty }.map(FileSystem.absolute).filter { known.insert($0).inserted }
    }
}
