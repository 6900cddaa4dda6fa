import CLibcurl
import Glibc
import Reactor

/// The sockets of one multi handle on one event loop. Loop's thread only.
final class CurlSockets {
    let loop: EventLoop
    private var sockets: [CurlSocket?] = []
    private var woken: [CurlSocket] = []
    /// Tells libcurl a socket's readiness by the descriptor and a mask of CURL_CSELECT.
    var ready: (curl_socket_t, Int32) -> Void = { _, _ in }

    init(loop: EventLoop) { self.loop = loop }

    subscript(descriptor: curl_socket_t) -> CurlSocket? {
        Int(descriptor) < sockets.count ? sockets[Int(descriptor)] : nil
    }

    private func keep(_ descriptor: curl_socket_t, isTransient: Bool) -> CurlSocket {
        let socket = CurlSocket(descriptor, among: self, isTransient: isTransient)
        while sockets.count <= Int(descriptor) { sockets.append(nil) }
        sockets[Int(descriptor)] = socket
        return socket
    }

    func open(family: Int32) -> curl_socket_t {
        let descriptor = Glibc.socket(family, heimdallr_socket_open_flags, 0)
        return descriptor < 0 ? heimdallr_socket_bad : adopt(descriptor)
    }

    /// Takes ownership of a socket that libcurl will use.
    func adopt(_ descriptor: Int32) -> curl_socket_t {
        _ = keep(descriptor, isTransient: false)
        return descriptor
    }

    func close(_ descriptor: curl_socket_t) {
        if let socket = self[descriptor] {
            socket.wanted = 0
            socket.carrier = nil
            if socket.isRegistered { loop.unregister(descriptor) }
            sockets[Int(descriptor)] = nil
        }
        Glibc.close(descriptor)
    }

    /// - Parameter what: CURL_POLL_IN, CURL_POLL_OUT, both, or CURL_POLL_REMOVE.
    func want(_ what: Int32, of descriptor: curl_socket_t) {
        if what == CURL_POLL_REMOVE {
            guard let socket = self[descriptor] else { return }
            socket.wanted = 0
            // A transient socket is the resolver's wake-up pipe. libcurl closes it without our callback.
            if socket.isTransient {
                loop.unregister(descriptor)
                sockets[Int(descriptor)] = nil
            }
            return
        }
        let socket = self[descriptor] ?? keep(descriptor, isTransient: true)
        let wantsToWrite = what & CURL_POLL_OUT != 0 && socket.wanted & CURL_POLL_OUT == 0
        socket.wanted = what
        if !socket.isRegistered {
            watch(socket)
        } else if socket.hasMissed {
            woken.append(socket)
        } else if wantsToWrite {
            socket.writeAgain()
        }
    }

    func watch(_ socket: CurlSocket) {
        guard !socket.isRegistered else { return }
        // Fails only if the kernel has no memory or epoll watch left. The exchange then ends by its timeout.
        socket.isRegistered = (try? loop.register(socket.descriptor, handler: socket)) != nil
    }

    /// Whether sockets have readiness that epoll reported before libcurl wanted it. `wake` passes it to libcurl.
    var hasWoken: Bool { !woken.isEmpty }

    func wake() { while let socket = woken.popLast() { socket.wake() } }
}
