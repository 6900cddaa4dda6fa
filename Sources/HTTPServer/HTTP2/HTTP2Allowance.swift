/// Bytes that the streams of one connection hold together: heads of requests, bodies, and answers. Without this bound,
/// each of a hundred streams could hold the most that a request may, for a program that sent a few bytes.
///
/// The connection's window bounds unread bodies. Past the allowance, a new stream is refused, a body is not kept for a
/// replay, and nothing of an answer is read from its upstream.
struct HTTP2Allowance {
    /// Bodies that no handler has read: the connection's flow-control window.
    static let bodies = 192 << 10
    /// Heads, kept bodies and unsent answers together.
    static let others = 320 << 10
    /// Unsent answers, so that their program can still begin requests.
    static let answers = 128 << 10
    /// Bodies kept for a replay, if several streams keep one.
    static let kept = 128 << 10
    /// Number of streams whose answers may wait for the program in a wide window of the upstream, beside the allowance.
    static let readAhead = 2
    /// Unsent bytes that each stream may have, so that none waits for the others.
    static let least = 4 << 10

    /// Part of one stream.
    struct Share {
        var head = 0
        var kept = 0
        var behind = 0
        var readsAhead = false
    }

    /// Heads of requests whose answers are not complete.
    private(set) var heads = 0
    /// Bodies that were read and are kept for a replay.
    private(set) var kept = 0
    /// Bytes of answers that handlers hold, because the connection did not take them.
    private(set) var behind = 0
    private(set) var readAhead = 0

    mutating func change(_ share: inout Share, to new: Share) {
        heads += new.head - share.head
        kept += new.kept - share.kept
        behind += new.behind - share.behind
        readAhead += (new.readsAhead ? 1 : 0) - (share.readsAhead ? 1 : 0)
        share = new
    }

    /// Whether a request with a head of this size may begin. One request always may.
    /// - Parameter unsent: unsent bytes of answers.
    func admits(head size: Int, unsent: Int) -> Bool {
        heads == 0 || heads + size + kept + min(unsent + behind, Self.answers) <= Self.others
    }

    /// Whether a stream may keep its body. One stream always may.
    /// - Parameter own: part of `kept` that is the stream's own.
    func keeps(_ own: Int) -> Bool { kept <= Self.kept || kept == own }

    /// Number of bytes of an answer for which there is room.
    /// - Parameters:
    ///   - own: unsent bytes of the answer's stream.
    ///   - unsent: unsent bytes of all streams.
    func room(own: Int, unsent: Int) -> Int { max(Self.least - own, Self.answers - unsent - behind, 0) }
}
