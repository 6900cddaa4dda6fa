/// A value that belongs to one event loop, in a wrapper that may travel.
///
/// What runs elsewhere (a token fetch, a signal handler) holds it to hand it back to the loop:
/// `loop.execute { bound.value.finish() }`. Touching `value` on any other thread is a programming error and traps.
/// The wrapped object's `deinit` must not care where it runs.
public struct LoopBound<Value>: @unchecked Sendable {
    // @unchecked: every access is checked to be on the loop's own thread.
    private let wrapped: Value
    public let loop: EventLoop

    public init(_ value: Value, on loop: EventLoop) {
        loop.preconditionOnLoop()
        wrapped = value
        self.loop = loop
    }

    public var value: Value {
        loop.preconditionOnLoop()
        return wrapped
    }
}
