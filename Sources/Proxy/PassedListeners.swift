public import Configuration
public import Reactor

/// The configuration's use of the sockets that the service manager passed (sd_listen_fds(3)).
extension Configuration {
    /// All addresses to listen at, except the administration's. `upstream` is an index; `nil` for `proxy.listen`.
    var listenAddresses: [(address: ListenAddress, upstream: Int?)] {
        proxy.listen.map { ($0, nil) }
            + upstreams.enumerated().compactMap { index, upstream in upstream.listen.map { ($0, index) } }
    }

    /// Name by which a passed socket is found if no address matches.
    func passedName(upstream: Int?) -> String { upstream.map { "\(upstreams[$0].host.host)" } ?? "proxy" }

    public static let adminName = "admin"
    public static let adminSocketName = "admin-socket"

    /// Returns errors in the passed sockets, with remedies. Blocks while it looks up names.
    public func faults(ofPassed sockets: [PassedSocket]) -> [String] {
        var faults: [String] = []
        var left = PassedSockets(sockets)
        for (address, upstream) in listenAddresses {
            // A failed look-up is reported when the listener opens.
            for socketAddress in (try? ProxyServer.resolve(address)) ?? [] {
                guard let socket = left.claim(socketAddress, name: passedName(upstream: upstream)) else { continue }
                if case .unix(_, let mode) = address, let fault = Self.fault(socket, mode) { faults.append(fault) }
            }
        }
        if let admin {
            if let socketAddress = try? ProxyServer.resolve(admin.listen).first {
                _ = left.claim(socketAddress, name: Self.adminName)
            }
            // The administration checks each program's user ID, so the file's mode does not matter.
            _ = left.claim(SocketAddress(.unix(path: admin.socket ?? "")), name: Self.adminSocketName)
        }
        for socket in left.unclaimed {
            let twice = sockets.first { $0 != socket && $0.address == socket.address }
            faults.append(
                twice.map { "\(socket) is passed, and so is \($0): take one of them out of its socket unit" }
                    ?? "\(socket) is passed, and nothing in the configuration listens there: write it as `listen` into "
                    + "proxy, an upstream or admin, or take its ListenStream= out of the socket unit")
        }
        return faults
    }

    /// Returns an error if the file's mode admits, or may admit, users that the configuration does not admit.
    private static func fault(_ socket: PassedSocket, _ mode: UInt16?) -> String? {
        let allowed = mode ?? ProxyServer.defaultMode
        guard let actual = socket.mode else {
            return allowed == 0o666
                ? nil
                : "\(socket): its file's mode can't be read, so any user might be able to connect; if you want that, "
                    + "write mode: \"0666\" beside its path"
        }
        // A program needs write permission to connect (unix(7)).
        guard actual & ~allowed & 0o222 != 0 else { return nil }
        let (has, may) = (octal(actual), octal(allowed))
        return
            "\(socket): its file has mode \(has), but the configuration allows only \(may): write SocketMode=\(may) "
            + "into the socket unit, or mode: \"\(has)\" beside its path"
    }

    private static func octal(_ mode: UInt16) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
