import Cryptography
import Heimdallr
import HeimdallrCurl
import Synchronization
import TestSupport
import Testing
import WireText

@testable import Administration

/// A login that begins at one proxy of a fleet and ends at another. Each table here stands for one proxy.
@Suite("logins that several proxies share")
struct SharedLoginTests {
    private let redirectURI = "http://127.0.0.1:8081/callback"
    private let shared = PendingLoginMemoryStore()

    private func client(
        _ endpoint: TokenEndpoint, _ grant: InteractiveGrant = InteractiveGrant(), identifier: String = "c"
    ) throws -> Heimdallr {
        var configuration = HeimdallrConfiguration(tokenEndpoint: endpoint.url)
        configuration.authorizationEndpoint = "http://127.0.0.1:1/authorize"
        configuration.deviceAuthorizationEndpoint = endpoint.url.replacing("/token", with: "/device")
        configuration.allowPlaintext = true
        return try Heimdallr(
            name: "api", configuration: configuration,
            credentials: OAuthClientSecretCredentials(identifier: identifier),
            grant: grant, httpClient: try CurlHTTPClient())
    }

    private func state(_ url: String) throws -> String {
        String(try #require(url.firstMatch(of: /[?&]state=([^&]+)/)?.1))
    }

    @Test func `a browser that comes back to another proxy is signed in there, once, with the same verifier`()
        async throws
    {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1")])
        let (one, other) = (PendingLogins(shared: shared), PendingLogins(shared: shared))
        let there = try client(endpoint)
        let (url, cookie) = try await one.beginAtBrowser(try client(endpoint), redirectURI: redirectURI, ticket: nil)
        let state = try state(url)
        let cookies = [cookie.name: cookie.value.revealed, "other": "x"]
        #expect(throws: LoginAttempts.Refusal.unknown) { try other.take(state: state, cookies: cookies) }
        let taken = try #require(await other.takeShared(state: state, cookies: cookies, clients: [there]))
        #expect(taken.client === there)
        try await other.finish(taken, redirectedTo: "\(redirectURI)?code=THE-CODE&state=\(state)")
        #expect(there.hasAccessToken)
        let asked = try #require(endpoint.requests.first)
        #expect(asked["code"] == "THE-CODE")
        #expect(asked["redirect_uri"] == redirectURI)
        let challenge = try #require(url.firstMatch(of: /code_challenge=([^&]+)/)?.1)
        #expect(try Digest256.base64URL(asked["code_verifier"] ?? "") == String(challenge))
        #expect(await other.takeShared(state: state, cookies: cookies, clients: [there]) == nil, "once")
    }

    @Test func `another browser gets nothing, whatever it sends, and leaves the login as it was`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let (one, other) = (PendingLogins(shared: shared), PendingLogins(shared: shared))
        let there = try client(endpoint)
        let (url, cookie) = try await one.beginAtBrowser(try client(endpoint), redirectURI: redirectURI, ticket: nil)
        let state = try state(url)
        for cookies in [
            [:], [cookie.name: "AAAAAAAAAAAAAAAAAAAAAA"], ["other": cookie.value.revealed], [cookie.name: ""],
        ] {
            #expect(await other.takeShared(state: state, cookies: cookies, clients: [there]) == nil)
        }
        let cookies = [cookie.name: cookie.value.revealed]
        #expect(await other.takeShared(state: state + "x", cookies: cookies, clients: [there]) == nil)
        #expect(await other.takeShared(state: "", cookies: cookies, clients: [there]) == nil)
        #expect(await other.takeShared(state: state, cookies: cookies, clients: [there]) != nil)
    }

    @Test func `one code is exchanged by one proxy only, though the browser comes to both`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let (one, other) = (PendingLogins(shared: shared), PendingLogins(shared: shared))
        let here = try client(endpoint)
        let (url, cookie) = try await one.beginAtBrowser(here, redirectURI: redirectURI, ticket: nil)
        let state = try state(url)
        let cookies = [cookie.name: cookie.value.revealed]
        let first = try one.take(state: state, cookies: cookies)
        let second = try #require(
            await other.takeShared(state: state, cookies: cookies, clients: [try client(endpoint)]))
        let back = "\(redirectURI)?code=x&state=\(state)"
        await #expect(throws: LoginError.self) { try await one.finish(first, redirectedTo: back) }
        try await other.finish(second, redirectedTo: back)
        #expect(endpoint.requests.count == 1)
    }

    @Test func `a sign-in that ended where it began can't be ended elsewhere`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let (one, other) = (PendingLogins(shared: shared), PendingLogins(shared: shared))
        let here = try client(endpoint)
        let (url, cookie) = try await one.beginAtBrowser(here, redirectURI: redirectURI, ticket: nil)
        let state = try state(url)
        let cookies = [cookie.name: cookie.value.revealed]
        try await one.finish(
            try one.take(state: state, cookies: cookies), redirectedTo: "\(redirectURI)?code=x&state=\(state)")
        #expect(await other.takeShared(state: state, cookies: cookies, clients: [here]) == nil)
    }

    @Test func `a code never goes out with the credentials of another client_id`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let (one, other) = (PendingLogins(shared: shared), PendingLogins(shared: shared))
        let there = try client(endpoint, identifier: "d")
        let (url, cookie) = try await one.beginAtBrowser(try client(endpoint), redirectURI: redirectURI, ticket: nil)
        let state = try state(url)
        let taken = try #require(
            await other.takeShared(state: state, cookies: [cookie.name: cookie.value.revealed], clients: [there]))
        await #expect(throws: LoginError.reconfigured) {
            try await other.finish(taken, redirectedTo: "\(redirectURI)?code=THE-CODE&state=\(state)")
        }
        #expect(endpoint.requests.isEmpty)
    }

    @Test func `another client_id asks for no other one's device, and leaves the login to the others`() async throws {
        let codes = TokenEndpointAnswer.json(
            #"{"device_code":"D1","user_code":"ABCD","verification_uri":"http://127.0.0.1:1/go","expires_in":60,"interval":1}"#
        )
        let endpoint = try TokenEndpoint { _, _ in codes }
        let (one, other) = (PendingLogins(shared: shared), PendingLogins(shared: shared))
        let here = try client(endpoint, InteractiveGrant(.device))
        let there = try client(endpoint, InteractiveGrant(.device), identifier: "d")
        let id = try await one.beginDevice(here)
        one.close()
        #expect(await other.resume(id, there) == nil)
        #expect(other.ticket(id) == nil)
        #expect(await other.resume(id, here)?.device?.userCode == "ABCD")
        other.close()
        let login = try await here.beginDeviceLogin()
        await #expect(throws: LoginError.reconfigured) { try await there.finishDeviceLogin(login) }
    }

    @Test func `a sign-in that a reload finds under way ends with the new client`() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1")])
        let (former, next) = (try client(endpoint), try client(endpoint))
        let logins = PendingLogins(clients: { [next] })
        let (url, cookie) = try await logins.beginAtBrowser(former, redirectURI: redirectURI, ticket: nil)
        _ = await former.handOver(within: .seconds(1))
        let state = try state(url)
        let taken = try logins.take(state: state, cookies: [cookie.name: cookie.value.revealed])
        try await logins.finish(taken, redirectedTo: "\(redirectURI)?code=x&state=\(state)")
        #expect(next.hasAccessToken)
    }

    @Test func `a code waits while nobody knows whether another proxy spends it`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let store = FailingPendingStore(shared)
        let logins = PendingLogins(shared: store)
        let (url, cookie) = try await logins.beginAtBrowser(
            try client(endpoint), redirectURI: redirectURI, ticket: nil)
        let state = try state(url)
        let (cookies, back) = ([cookie.name: cookie.value.revealed], "\(redirectURI)?code=x&state=\(state)")
        store.isAway.store(true, ordering: .relaxed)
        let taken = try logins.take(state: state, cookies: cookies)
        await #expect(throws: LoginError.self) { try await logins.finish(taken, redirectedTo: back) }
        #expect(endpoint.requests.isEmpty)
        store.isAway.store(false, ordering: .relaxed)
        try await logins.finish(try logins.take(state: state, cookies: cookies), redirectedTo: back)
        #expect(endpoint.requests.count == 1)
    }

    @Test func `a copy that was written although the store failed can't spend the code a second time`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let store = FailingPendingStore(shared)
        let (one, other) = (PendingLogins(shared: store), PendingLogins(shared: shared))
        let client = try client(endpoint)
        store.isAway.store(true, ordering: .relaxed)
        let (url, cookie) = try await one.beginAtBrowser(client, redirectURI: redirectURI, ticket: nil)
        store.isAway.store(false, ordering: .relaxed)
        let (state, cookies) = (try state(url), [cookie.name: cookie.value.revealed])
        #expect(await other.takeShared(state: state, cookies: cookies, clients: [client]) == nil)
        try await one.finish(
            try one.take(state: state, cookies: cookies), redirectedTo: "\(redirectURI)?code=x&state=\(state)")
        #expect(client.hasAccessToken)
    }

    @Test func `the code for another device is shown and asked about by another proxy when the first is gone`()
        async throws
    {
        let codes = TokenEndpointAnswer.json(
            #"{"device_code":"D1","user_code":"ABCD","verification_uri":"http://127.0.0.1:1/go","expires_in":60,"interval":1}"#
        )
        let endpoint = try TokenEndpoint { request, _ in
            request.target == "/device"
                ? codes : request["device_code"] == "D1" ? .token("T1", refreshToken: "R1") : .error("invalid_grant")
        }
        let (one, other) = (PendingLogins(shared: shared), PendingLogins(shared: shared))
        let there = try client(endpoint, InteractiveGrant(.device))
        let id = try await one.beginDevice(try client(endpoint, InteractiveGrant(.device)))
        one.close()
        let ticket = try #require(await other.resume(id, there))
        #expect(ticket.device?.userCode == "ABCD")
        try await eventually("a token", within: .seconds(10)) { there.hasAccessToken }
        try await eventually("its end") { other.ticket(id)?.progress == .done }
        #expect(await other.resume("made-up", there) == nil)
    }
}

private final class FailingPendingStore: PendingLoginStore {
    let isAway = Atomic(false)
    private let inner: PendingLoginMemoryStore

    init(_ inner: PendingLoginMemoryStore) { self.inner = inner }

    /// Writes even while it is away: the answer alone is lost.
    func putPending(_ content: Secret, key: String, life: Duration) throws {
        inner.putPending(content, key: key, life: life)
        if isAway.load(ordering: .relaxed) { throw TokenStoreError("away", kind: .unreachable) }
    }

    func takePending(key: String) throws -> Secret? {
        if isAway.load(ordering: .relaxed) { throw TokenStoreError("away", kind: .unreachable) }
        return inner.takePending(key: key)
    }
}

private enum Digest256 {
    static func base64URL(_ text: String) throws -> String {
        Base64.encode(try Digest.sha256(Array(text.utf8)), alphabet: .url)
    }
}
