import Reactor

/// A time to wait, in the form that setting a deadline is cheapest with: a request sets several.
struct Timeout: Sendable {
    /// `nil`: without end.
    let nanoseconds: UInt64?

    init(_ duration: Duration?) {
        nanoseconds = duration.map { UInt64(max(0, $0.wholeNanoseconds)) }
    }

    static let off = Timeout(nil)
}
