import Foundation
import Testing

@testable import Playground

@Suite struct FormParametersTests {
    private func form(_ text: String) -> FormParameters? { FormParameters(Array(text.utf8)) }

    @Test func `escapes and pluses are undone`() {
        let form = form("a=1%2B1+%3d+2&na%20me=%C3%A4&empty=&bare")
        #expect(form?["a"] == "1+1 = 2")
        #expect(form?["na me"] == "ä")
        #expect(form?["empty"] == nil)
        #expect(form?["bare"] == nil)
    }

    @Test func `a value keeps its equal signs`() {
        #expect(form("code=ab==")?["code"] == "ab==")
    }

    @Test(arguments: ["a=1&a=2", "a=%2", "a=%zz", "a=%", "a=%ff"])
    func `what could be read in two ways is refused`(text: String) {
        #expect(form(text) == nil)
    }
}

@Suite struct ClientAuthenticationTests {
    private func read(_ authorization: [String], _ body: String = "") throws -> ClientAuthentication {
        ClientAuthentication(
            authorization: authorization, form: try #require(FormParameters(Array(body.utf8))))
    }

    private func basic(_ text: String) -> String { "Basic " + Data(text.utf8).base64EncodedString() }

    @Test func `Basic is form-encoded on both sides of the colon`() throws {
        #expect(try read([basic("an+id:s3%3Acr%2Bt")]) == .basic(id: "an id", secret: "s3:cr+t"))
        #expect(try read(["bASIC " + Data("a:b".utf8).base64EncodedString()]) == .basic(id: "a", secret: "b"))
    }

    @Test func `the body may carry id and secret instead`() throws {
        #expect(try read([], "client_id=a&client_secret=b") == .post(id: "a", secret: "b"))
    }

    @Test func `two ways at once are ambiguous`() throws {
        #expect(try read([basic("a:b")], "client_id=a&client_secret=b") == .ambiguous)
        #expect(try read([basic("a:b")], "client_id=other") == .ambiguous)
        #expect(try read([basic("a:b"), basic("a:b")]) == .ambiguous)
        #expect(try read([basic("a:b")], "client_id=a") == .basic(id: "a", secret: "b"))
    }

    @Test(arguments: ["Basic", "Basic !!!", "Bearer x", "Basic YQ==", "Basic Y%ZZ"])
    func `what is not a name and a secret authenticates nobody`(value: String) throws {
        #expect(try read([value]) == .none(basic: true))
    }

    @Test func `an id without a secret authenticates nobody`() throws {
        #expect(try read([], "client_id=a") == .none(basic: false))
    }
}
