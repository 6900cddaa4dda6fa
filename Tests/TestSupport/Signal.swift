/// A signal that is given once, and that tasks wait for.
public struct Signal: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    public init() { (stream, continuation) = AsyncStream.makeStream() }

    public func give() { continuation.finish() }

    /// Waits until the signal is given, or the task is cancelled.
    public func wait() async { for await _ in stream {} }

    /// Waits until the signal is given, even in a cancelled task.
    public func waitWhateverComes() async {
        await Task { [stream] in for await _ in stream {} }.value
    }
}
