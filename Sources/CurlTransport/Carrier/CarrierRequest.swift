import Reactor

/// A place in a pool's queue, or the connection that is being made for them; kept and used again. Loop's thread
/// only.
public final class CarrierRequest {
    enum State {
        case none
        case queued
        case dialling(Carrier)
    }

    var state = State.none
    /// Whom it serves while it is not `none`.
    var owner: (any CarrierOwner)?
    weak var pool: CarrierPool?
    private(set) var origin = Origin(scheme: .http, host: "", port: 0)
    private(set) var isFresh = false
    private(set) var tunnels = false
    private(set) var deadline = LoopTime(nanoseconds: 0)

    public init() {}

    /// Whether something is under way: the owner will be told what comes of it.
    public var isPending: Bool { if case .none = state { false } else { true } }

    /// It waits in the queue, and occupies no connection.
    public var isQueued: Bool { if case .queued = state { true } else { false } }

    func begin(_ origin: Origin, isFresh: Bool, tunnels: Bool, deadline: LoopTime) {
        self.origin = origin
        self.isFresh = isFresh
        self.tunnels = tunnels
        self.deadline = deadline
    }

    /// Ends it; the owner is told nothing more.
    public func cancel() {
        let state = state
        self.state = .none
        owner = nil
        switch state {
        case .none: break
        case .queued: pool?.leave(self)
        case .dialling(let carrier): carrier.close()
        }
    }

    /// - Returns: who has to be told.
    func finish() -> (any CarrierOwner)? {
        let owner = owner
        self.owner = nil
        state = .none
        return owner
    }
}
