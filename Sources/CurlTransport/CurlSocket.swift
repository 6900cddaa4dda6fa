import CLibcurl
import Glibc
import Reactor

/// One socket of libcurl's, watched from its first use to its end.
final class CurlSocket: ReadinessHandler, NextTurnHandler {
    let descriptor: curl_socket_t
    private unowned let pool: ConnectionPool
    /// Not opened by us: watched only while libcurl asks.
    let isTransient: Bool
    var isRegistered = false
    var maySpeakWhenIdle = false
    /// The exchange on it; `nil` while the connection is idle.
    var owner: Transfer?
    /// CURL_POLL_IN, CURL_POLL_OUT, both, or 0.
    var wanted: Int32 = 0
    private var missed: Readiness = []
    private var isAgain = false
    private var isRetired = false

    init(_ descriptor: curl_socket_t, pool: ConnectionPool, isTransient: Bool) {
        self.descriptor = descriptor
        self.pool = pool
        self.isTransient = isTransient
    }

    var hasMissed: Bool { !missed.isEmpty }

    func ready(_ readiness: Readiness) {
        guard wanted != 0 else {
            if owner != nil || pool.isTaken(self) {
                missed.formUnion(readiness)
            } else if !maySpeakWhenIdle, !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) {
                retire()
            }
            return
        }
        act(readiness)
    }

    /// Unasked-for bytes on an idle HTTP/1 connection would be taken for the next answer, so it is ended. libcurl closes
    /// it when it looks at it next: it takes a connection with something to read for a live one, so that goes too.
    private func retire() {
        // Once: each call is an event of its own.
        guard !isRetired else { return }
        isRetired = true
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        // Discards without copying (tcp(7)); nothing new is taken in after the shutdown.
        while recv(descriptor, nil, 1 << 20, Int32(MSG_TRUNC | MSG_DONTWAIT)) > 0 {}
    }

    /// libcurl asks again after readiness came while it did not.
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
        pool.socketReady(descriptor, mask)
        if mask & CURL_CSELECT_OUT != 0 { writeAgain() }
    }

    /// libcurl sends one piece of an upload at a time and then wants to be told again, though the socket stays writable
    /// and so no new edge comes.
    func writeAgain() {
        guard wanted & CURL_POLL_OUT != 0, !isAgain else { return }
        isAgain = true
        pool.atNextTurn(self)
    }

    func nextTurn() {
        isAgain = false
        guard wanted & CURL_POLL_OUT != 0 else { return }
        let readiness = readinessNow
        guard readiness.contains(.writable) else { return }
        act(readiness)
    }

    /// When it is not writable, an edge will come. What is readable comes first: a peer that refuses an upload answers
    /// and closes, and writing on would lose its answer to a reset.
    private var readinessNow: Readiness {
        var query = pollfd(fd: descriptor, events: Int16(POLLIN | POLLOUT), revents: 0)
        guard unsafe poll(&query, 1, 0) > 0 else { return [] }
        var readiness: Readiness = []
        if query.revents & Int16(POLLIN) != 0 { readiness.insert(.readable) }
        if query.revents & Int16(POLLOUT) != 0 { readiness.insert(.writable) }
        return readiness
    }
}
