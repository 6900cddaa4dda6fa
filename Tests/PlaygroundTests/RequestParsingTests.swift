import Foundation
import Testing

@testable import Playground

@Suite struct FormParametersTests {
    @Test func `an empty parameter counts as absent`() {
        let form = FormParameters(Array("a=1%2B1+%3d+2&empty=&bare".utf8))
        #expect(form?["a"] == "1+1 = 2" && form?["empty"] == nil && form?["bare"] == nil)
        #expect(FormParameters(Array("a=1&a=2".utf8)) == nil)
    }
}

@Suite struct ClientAuthenticationTests {
    private func read(_ authorization: [String], _ body: String = "") throws -> PresentedCredentials {
        PresentedCredentials(authorization: authorization, form: try #require(FormParameters(Array(body.utf8))))
    }

    private func basic(_ text: String) -> String { "Basic " + Data(text.utf8).base64EncodedString() }

    @Test func `Basic is form-encoded on both sides of the colon`() throws {
        #expect(try read([basic("an+id:s3%3Acr%2Bt")]) == .basic(id: "an id", secret: "s3:cr+t"))
        #expect(try read(["bASIC " + Data("a:b".utf8).base64EncodedString()]) == .basic(id: "a", secret: "b"))
    }

    @Test func `a client may send id and secret in the body instead`() throws {
        #expect(try read([], "client_id=a&client_secret=b") == .post(id: "a", secret: "b"))
    }

    @Test func `two ways to authenticate at once are refused`() throws {
        #expect(try read([basic("a:b")], "client_id=a&client_secret=b") == .ambiguous)
        #expect(try read([basic("a:b")], "client_id=other") == .ambiguous)
        #expect(try read([basic("a:b"), basic("a:b")]) == .ambiguous)
        #expect(try read([basic("a:b")], "client_id=a") == .basic(id: "a", secret: "b"))
    }

    @Test(arguments: ["Basic", "Basic !!!", "Bearer x", "Basic YQ==", "Basic Y%ZZ"])
    func `credentials without a name or a secret authenticate nobody`(value: String) throws {
        #expect(try read([value]) == .none(basic: true))
    }

    @Test func `an id without a secret authenticates nobody`() throws {
        #expect(try read([], "client_id=a") == .none(basic: false))
    }
}
