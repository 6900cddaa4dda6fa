import Testing

@testable import Heimdallr

@Suite("scopes under the names that a server answers with")
struct ScopeNameTests {
    private static let google = "https://www.googleapis.com/auth/"
    private static let graph = "https://graph.microsoft.com/"

    @Test(arguments: [
        (["openid", "email", "profile"], ["\(google)userinfo.email", "\(google)userinfo.profile", "openid"]),
        (["\(google)userinfo.email", "\(google)calendar.readonly"], ["email", "\(google)calendar.readonly"]),
        (["User.Read", "Mail.Read"], ["\(graph)User.Read", "\(graph)Mail.Read", "\(graph).default"]),
        (["\(graph)Mail.Read"], ["Mail.Read", "openid"]), (["\(graph).default"], ["\(graph)Mail.Read"]),
        (["api://1234/.default"], ["api://1234/access"]), (["a,b"], ["a", "b"]),
    ])
    func `scopes under a server's own names do not count as missing`(wanted: [String], granted: [String]) {
        #expect(GrantedScope.missing(from: granted, wanted: wanted) == [])
    }

    @Test(arguments: [
        (["\(google)calendar.readonly", "email"], ["\(google)userinfo.email"], ["\(google)calendar.readonly"]),
        (["\(google)calendar"], ["\(google)calendar.readonly"], ["\(google)calendar"]),
        (["https://b.example/read"], ["https://a.example/read"], ["https://b.example/read"]),
        (["Mail.Read", "Mail.Send"], ["\(graph)Mail.Read"], ["Mail.Send"]),
        (["email"], ["\(google)gmail.email.readonly"], ["email"]), (["\(graph).default"], [], ["\(graph).default"]),
    ])
    func `scopes that the person has not granted count as missing`(
        wanted: [String], granted: [String], missing: [String]
    ) {
        #expect(GrantedScope.missing(from: granted, wanted: wanted) == missing)
    }
}
