import HTTPMessage
import HTTPServer
import Reactor
import TLSServer

// TLS that begins without a CONNECT: the kernel has redirected a connection of a program that knows of no proxy. The name in
// its ClientHello takes the CONNECT's place. Only TLS can answer here.
extension Forwarder {
    /// Whether the refused request is TLS that may be served.
    var isHello: Bool {
        guard context.sender.inside == nil, case .forward = context.role,
            context.rules.plan.interception != nil || context.rules.tunnels != nil
        else { return false }
        return stream.request.with { $1.starts(with: [0x16]) }
    }

    func beginRedirected() {
        context.sender.redirected = Redirected(destination: stream.source.originalDestination)
        perform(context.exchange.greet())
    }

    func readHello() {
        var hello = ClientHello.partial
        let peeked = stream.peek { bytes in
            hello = ClientHello(parsing: bytes)
            return hello != .partial
        }
        switch peeked {
        case .byte: hear(hello)
        case .wait: break
        case .end: perform(.leave(closes: true))
        case .gone: perform(.leave(closes: false))
        }
    }

    private func hear(_ hello: ClientHello) {
        guard case .whole(let name) = hello, let target = target(name) else { return endConnect(.noHello) }
        do throws(MessageError) {
            let head = Array("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n".utf8)
            try stream.replaceRequest(by: head.span)
        } catch {
            return endConnect(Problem(error))
        }
        context.exchange.heardHello(stream.request.with { Exchange.Request($0, $1) })
        guard !OwnConnections.contains(stream.source.address) else { return endConnect(.circle) }
        run(from: .identify)
    }

    /// - Returns: the host that the program names, or else the address that it dialled; `nil` without both.
    private func target(_ name: String?) -> String? {
        let destination = context.sender.redirected?.destination
        return name.map { "\($0):\(destination?.port ?? 443)" } ?? destination?.description
    }
}
