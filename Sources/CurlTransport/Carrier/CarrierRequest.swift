import HTTPMessage
import Reactor

/// A request for a connection. It waits in the pool's queue or for a dial. Reusable. Loop's thread only.
public final class CarrierRequest {
    enum State {
        case none
        case queued
        case dialling(Carrier)
    }

    var state = State.none
    /// The owner, while the state is not `none`.
    var owner: (any CarrierOwner)?
    weak var pool: CarrierPool?
    private(set) var origin = Origin(scheme: .http, host: "", port: 0)
    private(set) var needsNewConnection = false
    private(set) var use = CarrierUse.exchanges
    private(set) var deadline = LoopTime(nanoseconds: 0)

    public init() {}

    /// Whether the owner will still get a result.
    public var isPending: Bool { if case .none = state { false } else { true } }

    /// Whether this request waits in the queue, without a connection.
    public var isQueued: Bool { if case .queued = state { true } else { false } }

    func begin(_ origin: Origin, needsNewConnection: Bool, use: CarrierUse, deadline: LoopTime) {
        self.origin = origin
        self.needsNewConnection = needsNewConnection
        self.use = use
        self.deadline = deadline
    }

    /// Ends this request. The owner gets no further call.
    public func cancel() {
        let state = state
        _ = finish()
        switch state {
        case .none: break
        case .queued: pool?.leave(self)
        case .dialling(let carrier): carrier.close()
        }
    }

    func finish() -> (any CarrierOwner)? {
        defer { (owner, state) = (nil, .none) }
        return owner
    }
}
