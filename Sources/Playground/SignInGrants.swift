import Cryptography
import WireText

/// The grants that need a person's consent: the authorization code with PKCE (RFC 6749, section 4.1; RFC 7636) and the
/// device code (RFC 8628). Uses no I/O and no clock. Its memory is bounded.
struct SignInGrants: Sendable {
    /// A client's question to the person.
    struct Question: Sendable {
        let client: String
        let redirectURI: String
        let state: String?
        let challenge: String
        let scope: String
    }

    struct Code: Sendable {
        let question: Question
        /// Number of the login that the code's first use began; `nil`: the code was not used yet.
        var family: AuthorizationServer.Family?
    }

    struct Device: Sendable {
        enum Decision: Sendable { case none, allowed, denied }

        let scope: String
        var decision = Decision.none
        var askedAt: Instant?
    }

    struct DeviceCodes: Sendable {
        let deviceCode: String
        let userCode: String
    }

    static let deviceLifetime = Duration.seconds(600)
    static let pollInterval = Duration.seconds(1)

    /// Questions without an answer yet, by the ticket that the page's form sends back.
    var questions = TokenTable<Question>(lifetime: .seconds(600), capacity: 1000)
    var codes = TokenTable<Code>(lifetime: .seconds(60), capacity: 1000)
    var devices = TokenTable<Device>(lifetime: deviceLifetime, capacity: 1000)
    /// Device codes by user code.
    var deviceCodes = TokenTable<String>(lifetime: deviceLifetime, capacity: 1000)

    mutating func beginDevice(scope: String, now: Instant) -> DeviceCodes {
        let codes = DeviceCodes(deviceCode: RandomText.make(), userCode: Self.userCode())
        devices.insert(codes.deviceCode, Device(scope: scope), now: now)
        deviceCodes.insert(Self.folded(codes.userCode), codes.deviceCode, now: now)
        return codes
    }

    /// Stores the person's decision. Returns `false` if no device waits with this code.
    mutating func decide(userCode: String, allowed: Bool, now: Instant) -> Bool {
        let code = Self.folded(userCode)
        guard let device = deviceCodes.grant(for: code, now: now), devices.grant(for: device, now: now) != nil else {
            return false
        }
        deviceCodes.remove { $0 == device }
        devices.update(device) { $0.decision = allowed ? .allowed : .denied }
        return true
    }

    /// Returns the scope to which the person agreed. A device code can be exchanged once.
    mutating func redeemDevice(_ deviceCode: String, now: Instant) throws(ErrorAnswer) -> String {
        guard let device = devices.grant(for: deviceCode, now: now) else { throw .expiredToken }
        switch device.decision {
        case .allowed:
            devices.remove(deviceCode)
            return device.scope
        case .denied: throw .accessDenied
        case .none:
            devices.update(deviceCode) { $0.askedAt = now }
            guard let before = device.askedAt, now - before < Self.pollInterval else { throw .authorizationPending }
            throw .slowDown
        }
    }

    /// Whether BASE64URL(SHA256(verifier)) is the challenge (RFC 7636, section 4.6).
    static func verifies(_ verifier: String, _ challenge: String) -> Bool {
        guard let digest = try? Digest.sha256(Array(verifier.utf8)) else { return false }
        return Base64.encode(digest, alphabet: .url).isEqualInConstantTime(to: challenge)
    }

    /// Returns eight random consonants, which form no words (RFC 8628, section 6.1).
    private static func userCode() -> String {
        let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
        var generator = SystemRandomNumberGenerator()
        let text = (0..<8).map { _ in letters.randomElement(using: &generator) ?? "B" }
        return String(text[..<4]) + "-" + String(text[4...])
    }

    private static func folded(_ code: String) -> String { code.uppercased().filter { $0.isASCII && $0.isLetter } }
}
