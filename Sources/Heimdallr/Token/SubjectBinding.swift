internal import Cryptography

// Tokens made from another client's sign-in. They are for its person, and go with the sign-in, at every replica.
extension SignIn {
    /// Identifies the person by issuer and subject, in all sign-ins and refreshes. Never 0, which means nobody.
    fileprivate var identity: UInt64? {
        guard let idToken else { return nil }
        let claims = (try? SignedToken(idToken.revealedBytes))?.payload
        var text = Secret(name ?? "")
        if let issuer = claims?["iss"]?.string, let subject = claims?["sub"]?.string {
            text = Secret("\(issuer.utf8.count) \(issuer) \(subject)")
        }
        return text.withSpan { try? Fingerprint($0) }.map { $0.number | 1 }
    }
}

extension HeldGrant {
    /// Identifies the signed-in person; 0: nobody, or the server does not name the person.
    static func identity(of signIn: SignIn?) -> UInt64 { signIn?.identity ?? 0 }
}

extension TokenLifeCycle {
    /// The person who is signed in at this client; 0: nobody; `nil`: not known yet, or no longer.
    var identity: UInt64? { stage == .running && !saving.isUnread ? grant.identity : nil }

    /// Whether there are tokens that were made from the sign-in of another person than `subject`.
    func holdsTokens(notFor subject: UInt64) -> Bool {
        grant.subject != subject && (held != nil || refreshToken != nil)
    }

    /// Drops tokens made from another person's sign-in, also in the store. Keeps a request that may bring new ones.
    mutating func drop(notFor subject: UInt64, _ moment: Moment) {
        guard stage == .running, holdsTokens(notFor: subject) else { return }
        if let fetch, fetch.kind != .grant { cancelFetch() }
        if held != nil { drop(.discarded) }
        grant.forget()
        suspicions = Suspicions()
        saving.saveInherited(record(nil, moment), now: moment.now)
        if subject != 0 || !waiters.isEmpty { wantToken(now: moment.now) }
        tick(moment)
    }
}

extension Heimdallr {
    var identity: UInt64? { look { $0.identity } }

    /// Drops tokens whose certificate is not that of new connections, or whose person is no longer signed in.
    func checkBinding() {
        if let subject = subject?()?.identity, look({ $0.holdsTokens(notFor: subject) }) {
            apply { $0.drop(notFor: subject, $1) }
        }
        checkCertificate()
    }

    /// Returns a record from the store for use. Drops tokens that were made from another person's sign-in.
    func fitting(_ stored: TokenRecord) -> TokenRecord {
        var record = stored
        if let subject = subject?()?.identity, record.subject != subject {
            (record.accessToken, record.refreshToken, record.refreshTokenLife) = (nil, nil, nil)
        }
        return record
    }

    /// Whether the person has changed since `former`, which a token request uses.
    func hasOtherSubject(than former: UInt64?) -> Bool { subject?()?.identity.map { $0 != former } ?? false }

    /// Drops this client's tokens at once when the client that it uses the sign-in of changes its person. Call it again
    /// when another object has taken that client's place.
    package func followSubject() {
        guard let provider = subject?() else { return }
        provider.onIdentityChange(of: name) { [weak self] in
            self?.checkBinding()
            self?.credentialsChanged()
        }
        checkBinding()
    }

    /// Waits until the client that this one uses the sign-in of has read its record. Without it, a stored token of a
    /// former person could be used at the start.
    func awaitSubject() async {
        guard let provider = subject?() else { return }
        provider.apply { life, _ in life.load() }
        let deadline = clock.now() + .seconds(5)
        while provider.look({ $0.stage == .loading }), clock.now() < deadline {
            guard (try? await clock.sleep(clock.now() + .milliseconds(5))) != nil else { return }
        }
    }
}
