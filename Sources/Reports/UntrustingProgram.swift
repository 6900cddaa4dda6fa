/// A program that rejected the proxy's certificate inside CONNECT. Shown in the status.
public struct UntrustingProgram: Sendable, Equatable {
    /// `HOST:PORT` of the program's CONNECT.
    public var target: String
    /// User of the proxy, subject of a client certificate, user ID or address.
    public var caller: String
    /// `User-Agent` of the program's CONNECT.
    public var program: String?
    public var reason: String
    public var advice: String
    /// Number of such failures.
    public var count: Int
    /// Time since the last failure.
    public var ago: Duration

    public init(
        target: String, caller: String, program: String?, reason: String, advice: String, count: Int, ago: Duration
    ) {
        self.target = target
        self.caller = caller
        self.program = program
        self.reason = reason
        self.advice = advice
        self.count = count
        self.ago = ago
    }
}
