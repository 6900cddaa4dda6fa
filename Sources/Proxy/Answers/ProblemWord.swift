/// Name of a problem: the last part of its `type`, `reason` in the access log, and its heading in docs/errors.md.
/// A published word never changes its meaning.
enum ProblemWord: String, Sendable, CaseIterable {
    case malformedRequest = "malformed-request"
    case slowRequest = "slow-request"
    case bodyCut = "body-cut"
    case bodyTooLarge = "body-too-large"
    case connectRefused = "connect-refused"
    case tunnelNotListed = "tunnel-not-listed"
    case otherAuthority = "other-authority"
    case schemeNotSupported = "scheme-not-supported"
    case hostMissing = "host-missing"
    case noUpstream = "no-upstream"
    case notCovered = "not-covered"
    case notForCaller = "not-for-caller"
    case userRequired = "user-required"
    case ambiguousPath = "ambiguous-path"
    case wholeServer = "whole-server"
    case foreignHost = "foreign-host"
    case webPage = "web-page"
    case ownCredential = "own-credential"
    case methodOverride = "method-override"
    case pathOverride = "path-override"
    case destinationNotCovered = "destination-not-covered"
    case noQuery = "no-query"
    case signsInItself = "signs-in-itself"
    case bodyNotSignable = "body-not-signable"
    case signedChunks = "signed-chunks"
    case bytesBeforeUpgrade = "bytes-before-upgrade"
    case tooManyCallers = "too-many-callers"
    case loop
    case circle
    case noCredential = "no-credential"
    case stopping
    case `internal`
    case loginNeeded = "login-needed"
    case tokensRefused = "tokens-refused"
    case clientRefused = "client-refused"
    case noToken = "no-token"
    case dns
    case dnsTimeout = "dns-timeout"
    case connectionRefused = "connection-refused"
    case unreachable
    case connectionTimeout = "connection-timeout"
    case connectionLimit = "connection-limit"
    case machineShortage = "machine-shortage"
    case addressDenied = "address-denied"
    case tls
    case tlsCertificate = "tls-certificate"
    case tlsConfiguration = "tls-configuration"
    case nextProxy = "next-proxy"
    case connectionLost = "connection-lost"
    case responseCut = "response-cut"
    case malformedResponse = "malformed-response"
    case unaskedUpgrade = "unasked-upgrade"
    case responseTimeout = "response-timeout"
    case expectationFailed = "expectation-failed"
    case callerTokenNeeded = "caller-token-needed"
    case callerTokenRefused = "caller-token-refused"

    /// `type` of the problem document (RFC 9457, section 3.1.1).
    var type: String { "urn:heimdallr-proxy:problem:\(rawValue)" }
}
