import CurlTransport
import Reactor

/// A value on its own event loop. The loop stops with the last reference to this object.
final class OnLoop<Value>: Sendable {
    let loop: EventLoop
    let value: LoopBound<Value>

    /// - Parameter make: called on the loop, with the options as `change` leaves them.
    init(
        _ change: @Sendable @escaping (inout PoolOptions) -> Void,
        make: @Sendable @escaping (PoolOptions, EventLoop) throws -> Value
    ) async throws {
        let loop = try EventLoop.start(name: "\(Value.self)")
        self.loop = loop
        value = try await loop.run {
            var options = PoolOptions()
            change(&options)
            return LoopBound(try make(options, loop), on: loop)
        }
    }

    deinit { loop.stop() }
}
