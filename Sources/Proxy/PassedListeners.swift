public import Configuration
public import Reactor

/// What a configuration says of the sockets that the process was started with.
extension Configuration {
    /// Everything it listens at, except for the administration, with the index of the upstream whose own it is.
    var listenAddresses: [(address: ListenAddress, upstream: Int?)] {
        proxy.listen.map { ($0, nil) }
            + upstreams.enumerated().compactMap { index, upstream in upstream.listen.map { ($0, index) } }
    }

    /// What the socket is to be called that is passed for a listener whose address can't be known.
    func passedName(upstream: Int?) -> String { upstream.map { "\(upstreams[$0].host.host)" } ?? "proxy" }

    public static let adminName = "admin"
    public static let adminSocketName = "admin-socket"

    /// What is wrong with the sockets that were passed, and what to do. Names are looked up, which blocks.
    public func faults(ofPassed sockets: [PassedSocket]) -> [String] {
        var faults: [String] = []
        var left = PassedSockets(sockets)
        for (address, upstream) in listenAddresses {
            // What can't be looked up is an error where it is opened.
            for place in (try? ProxyServer.resolve(address)) ?? [] {
                guard let socket = left.claim(place, name: passedName(upstream: upstream)) else { continue }
                if case .unix(_, let mode) = address, let fault = Self.fault(socket, mode) { faults.append(fault) }
            }
        }
        if let admin {
            if let place = try? ProxyServer.resolve(admin.listen).first {
                _ = left.claim(place, name: Self.adminName)
            }
            // Whoever connects there is asked by the kernel who they are, so its file's mode opens nothing.
            _ = left.claim(SocketAddress(.unix(path: admin.socket ?? "")), name: Self.adminSocketName)
        }
        for socket in left.unclaimed {
            let twice = sockets.first { $0 != socket && $0.address == socket.address }
            faults.append(
                twice.map { "\(socket) is passed, and so is \($0): leave one of them" }
                    ?? "\(socket) is passed, and nothing in the configuration listens there: write it as `listen` into "
                    + "proxy, an upstream or admin, or take its ListenStream= out of the socket unit")
        }
        return faults
    }

    /// Who may connect is what the configuration says, also where somebody else has made the file.
    private static func fault(_ socket: PassedSocket, _ mode: UInt16?) -> String? {
        let allowed = mode ?? ProxyServer.defaultMode
        guard let actual = socket.mode else {
            return allowed == 0o666
                ? nil
                : "\(socket): its file can't be seen from here, so anybody may be let in; write mode: \"0666\" beside its "
                    + "path if they are to be"
        }
        // To connect takes the right to write. unix(7).
        guard actual & ~allowed & 0o222 != 0 else { return nil }
        let (has, may) = (octal(actual), octal(allowed))
        return
            "\(socket): its file has mode \(has), and the configuration lets in no more than \(may): write SocketMode=\(may) "
            + "into the socket unit, or mode: \"\(has)\" beside its path"
    }

    private static func octal(_ mode: UInt16) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
