import CLibcurl
import Glibc
import Reactor

/// A socket of libcurl, watched from its first use to its end.
final class CurlSocket: ReadinessHandler, NextTurnHandler {
    let descriptor: curl_socket_t
    private unowned let sockets: CurlSockets
    /// Whether libcurl opened the socket without our callback. Such a socket is watched only while libcurl wants it.
    let isTransient: Bool
    var isRegistered = false
    /// Carrier of this socket, once the connection is ready.
    var carrier: Carrier?
    /// CURL_POLL_IN, CURL_POLL_OUT, both, or 0.
    var wanted: Int32 = 0
    private var missed: Readiness = []
    private var willWriteAgain = false

    init(_ descriptor: curl_socket_t, among sockets: CurlSockets, isTransient: Bool) {
        self.descriptor = descriptor
        self.sockets = sockets
        self.isTransient = isTransient
    }

    var hasMissed: Bool { !missed.isEmpty }

    func ready(_ readiness: Readiness) {
        if let carrier { return carrier.ready(readiness) }
        guard wanted != 0 else {
            missed.formUnion(readiness)
            return
        }
        act(readiness)
    }

    /// Tells libcurl the readiness that was reported while libcurl did not want it.
    func wake() {
        guard wanted != 0, hasMissed else { return }
        act(missed)
    }

    private func act(_ readiness: Readiness) {
        missed = []
        var mask: Int32 = 0
        if wanted & CURL_POLL_IN != 0, !readiness.isDisjoint(with: [.readable, .peerClosed]) {
            mask |= CURL_CSELECT_IN
        }
        if wanted & CURL_POLL_OUT != 0, readiness.contains(.writable) { mask |= CURL_CSELECT_OUT }
        if !readiness.isDisjoint(with: .failed) {
            mask |= CURL_CSELECT_ERR | (wanted & CURL_POLL_IN != 0 ? CURL_CSELECT_IN : 0)
        }
        guard mask != 0 else { return }
        sockets.ready(descriptor, mask)
        if mask & CURL_CSELECT_OUT != 0 { writeAgain() }
    }

    /// Calls libcurl again in the next turn. libcurl sends one piece of an upload per call, but the socket stays
    /// writable, so no new edge is reported.
    func writeAgain() {
        guard wanted & CURL_POLL_OUT != 0, !willWriteAgain else { return }
        willWriteAgain = true
        sockets.loop.atNextTurn(self)
    }

    func nextTurn() {
        willWriteAgain = false
        var query = pollfd(fd: descriptor, events: Int16(POLLIN | POLLOUT), revents: 0)
        // If the socket is not writable, an edge is reported later.
        guard carrier == nil, wanted & CURL_POLL_OUT != 0, unsafe poll(&query, 1, 0) > 0,
            query.revents & Int16(POLLOUT) != 0
        else { return }
        // With both flags, libcurl reads first: a peer that refuses an upload may have answered and closed. A write
        // would then cause a reset, which discards the answer.
        act(query.revents & Int16(POLLIN) != 0 ? [.readable, .writable] : .writable)
    }
}
