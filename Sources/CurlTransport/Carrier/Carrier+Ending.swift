import CLibcurl
import Glibc
import Reactor

// Half-close and close.
extension Carrier {
    /// Upper bound for the size of a TLS record with one alert.
    private static let maxCloseNotifyBytes = 512

    /// Ends only our side, by FIN or close_notify. All bytes must have been sent, and none may follow. The caller has
    /// to repeat the call at each `carrierReady` until close_notify is sent.
    public func shutdownWriting() {
        guard canShutDownWriting, let socket else { return }
        guard isSecured else {
            _ = shutdown(socket.descriptor, Int32(SHUT_WR))
            return
        }
        if !wire.hasMadeCloseNotify {
            wire.hasMadeCloseNotify = true
            _ = unsafe closeNotify.withSpareCapacity(Self.maxCloseNotifyBytes) {
                unsafe heimdallr_easy_close_notify(
                    easy.pointer, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), Self.maxCloseNotifyBytes)
            }
        }
        guard !closeNotify.isEmpty else { return }
        let count = closeNotify.withBytes { words in
            unsafe words.withUnsafeBytes {
                unsafe Glibc.send(socket.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
        }
        if count > 0 { closeNotify.consume(count) }
    }

    /// Whether our side alone can be ended. `false` over TLS to a next proxy: close_notify would end that connection.
    public var canShutDownWriting: Bool { phase == .inUse && socket != nil && !hop.isSecure }

    /// Returns a duplicate of the socket for use without libcurl, and closes this carrier.
    func takeSocket(on loop: EventLoop) throws(TransportError) -> StreamSocket {
        defer { close() }
        guard let socket else { throw TransportError(.internal, message: "no descriptor for the connection") }
        do throws(SystemError) {
            return try StreamSocket.duplicate(socket.descriptor, loop: loop)
        } catch {
            throw TransportError(.internal, message: error.description)
        }
    }
}
