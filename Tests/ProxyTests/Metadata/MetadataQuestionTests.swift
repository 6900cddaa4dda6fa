import Configuration
import Testing

@testable import Proxy

@Suite("questions for metadata") struct MetadataQuestionTests {
    private func ask(
        _ kind: MetadataSettings.Kind, _ path: String, method: String = "GET", _ fields: [String: String] = [:],
        parameters: [String: String] = [:], authorization: Bool = false, resources: [String] = []
    ) -> MetadataQuestion {
        var settings = MetadataSettings(kind: kind)
        (settings.project, settings.email, settings.resources) = ("blue", "robot@blue.test", resources)
        settings.scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        if authorization { settings.authorization = .literal("secret") }
        let request = MetadataRequest(
            method: method, path: path, parameters: parameters, fields: fields.mapValues { [$0] })
        return MetadataQuestion(request, settings, session: "session") { $0 == "secret" }
    }

    private func text(_ question: MetadataQuestion) -> String? {
        guard case .known(let answer) = question else { return nil }
        return String(decoding: answer.body, as: UTF8.self)
    }

    private func status(_ question: MetadataQuestion) -> Int? {
        if case .refused(let refusal) = question { refusal.status } else { nil }
    }

    private static let google = "/computeMetadata/v1/"

    @Test(arguments: [
        ("/", "computeMetadata/\n"), (google + "project/project-id", "blue"),
        (google + "project/numeric-project-id", "0"), (google + "universe/universe-domain", "googleapis.com"),
        (google + "instance/service-accounts/", "default/\nrobot@blue.test/\n"),
        (google + "instance/service-accounts/default/email", "robot@blue.test"),
        (
            google + "instance/service-accounts/robot@blue.test/scopes",
            "https://www.googleapis.com/auth/cloud-platform\n"
        ),
    ])
    func `Google's libraries find project, account and scopes`(path: String, body: String) {
        #expect(text(ask(.google, path, ["metadata-flavor": "Google"])) == body)
    }

    @Test func `Google's token is there by the account's alias and by its address, with the field only`() {
        for account in ["default", "robot@blue.test"] {
            let path = Self.google + "instance/service-accounts/\(account)/token"
            #expect(ask(.google, path, ["metadata-flavor": "Google"]) == .token(form: "google"))
            #expect(status(ask(.google, path)) == 403)
            #expect(status(ask(.google, path, method: "POST", ["metadata-flavor": "Google"])) == 405)
        }
        let other = Self.google + "instance/service-accounts/other@blue.test/token"
        #expect(status(ask(.google, other, ["metadata-flavor": "Google"])) == 404)
        let identity = Self.google + "instance/service-accounts/default/identity"
        #expect(status(ask(.google, identity, ["metadata-flavor": "Google"])) == 404)
    }

    @Test(arguments: ["origin", "sec-fetch-site", "x-forwarded-for", "forwarded"])
    func `a request of a page or of a forwarding server gets nothing from any kind`(field: String) {
        #expect(status(ask(.google, "/", ["metadata-flavor": "Google", field: "x"])) == 403)
        #expect(status(ask(.azure, "/metadata/identity/oauth2/token", ["metadata": "true", field: "x"])) == 403)
        #expect(status(ask(.aws, "/latest/api/token", method: "PUT", [field: "x"])) == 403)
    }

    @Test func `Azure's token needs the field or the secret, and a resource of the list`() {
        let path = "/metadata/identity/oauth2/token"
        let resource = ["resource": "https://vault.test/"]
        #expect(ask(.azure, path, ["metadata": "true"], parameters: resource) == .token(form: "azure"))
        #expect(status(ask(.azure, path, parameters: resource)) == 400)
        #expect(status(ask(.azure, path, ["metadata": "true"])) == 400)
        #expect(
            ask(.azure, path, ["metadata": "true"], parameters: resource, resources: ["https://vault.test"])
                == .token(form: "azure"))
        #expect(
            status(ask(.azure, path, ["metadata": "true"], parameters: resource, resources: ["https://other.test"]))
                == 400)
        #expect(
            ask(.azure, "/any", ["x-identity-header": "secret"], parameters: resource, authorization: true)
                == .token(form: "azure"))
        #expect(status(ask(.azure, "/any", ["metadata": "true"], parameters: resource, authorization: true)) == 401)
    }

    @Test func `AWS's keys need the session that was fetched by PUT, or the secret`() {
        let time = ["x-aws-ec2-metadata-token-ttl-seconds": "60"]
        #expect(text(ask(.aws, "/latest/api/token", method: "PUT", time)) == "session")
        #expect(status(ask(.aws, "/latest/api/token", time)) == 405)
        let keys = "/latest/meta-data/iam/security-credentials/"
        let session = ["x-aws-ec2-metadata-token": "session"]
        #expect(text(ask(.aws, keys, session)) == "heimdallr")
        #expect(ask(.aws, keys + "heimdallr", session) == .token(form: "aws-instance"))
        #expect(status(ask(.aws, keys + "heimdallr")) == 401)
        #expect(ask(.aws, "/keys", ["authorization": "secret"], authorization: true) == .token(form: "aws-container"))
        #expect(status(ask(.aws, "/keys", ["authorization": "wrong"], authorization: true)) == 401)
    }
}
