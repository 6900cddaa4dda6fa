import HTTPMessage
import HTTPServer
import Reactor
import TLSServer

// TLS that begins without a CONNECT: the kernel redirected the connection of a program that does not know of the proxy.
// The proxy makes a CONNECT of the name in the ClientHello. A refusal is a TLS alert, because the program would not
// understand an HTTP answer.
extension Forwarder {
    /// Whether the bytes that could not be parsed as a request begin TLS that interception or a tunnel may serve.
    var isHello: Bool {
        guard context.sender.inside == nil, case .forward = context.role,
            context.installed.plan.interception != nil || context.installed.tunnels != nil
                || context.sender.enclosed != nil
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
        case .byte: serve(hello)
        case .wait: break
        case .end: perform(.leave(closes: true))
        case .gone: perform(.leave(closes: false))
        }
    }

    private func serve(_ hello: ClientHello) {
        guard case .whole(let name) = hello, let target = target(name) else { return endConnect(Problem(.noHello)) }
        if let name, let dialled = context.sender.dialled, name != dialled {
            return endConnect(Problem(.otherThanDialled))
        }
        do throws(MessageError) {
            let head = Array("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n".utf8)
            try stream.replaceRequest(by: head.span)
        } catch {
            return endConnect(Problem(error))
        }
        context.exchange.helloCame(stream.request.with { Exchange.Request($0, $1) })
        // The addresses of an enclosure's programs are others' out here.
        guard context.sender.enclosed != nil || !OwnConnections.contains(stream.source.address) else {
            return endConnect(Problem(.circle))
        }
        run(from: .identify)
    }

    /// Returns the target of the CONNECT: `name` of the ClientHello, or else the name or address that the program dialled.
    private func target(_ name: String?) -> String? {
        let destination = context.sender.redirected?.destination
        return (name ?? context.sender.dialled).map { "\($0):\(destination?.port ?? 443)" } ?? destination?.description
    }
}
