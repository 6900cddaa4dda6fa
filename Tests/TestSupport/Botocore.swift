import Foundation

/// Signatures by botocore, for comparison with ours.
public enum Botocore {
    /// A request without its signature.
    public struct Request: Encodable, Sendable {
        public var id = "AKIDEXAMPLE"
        public var secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
        public var token: String?
        public var service: String
        public var region = "us-east-1"
        public var method: String
        public var url: String
        /// Signed fields.
        public var fields: [[String]]
        public var body = ""
        public var date: String

        public init(service: String, method: String, url: String, fields: [[String]], date: String) {
            self.service = service
            self.method = method
            self.url = url
            self.fields = fields
            self.date = date
        }
    }

    /// Returns the signatures, each of 64 hexadecimal digits.
    public static func signatures(_ requests: [Request]) async throws -> [String] {
        let folder = try TemporaryDirectory()
        let file = folder.path + "/requests.json"
        try JSONEncoder().encode(requests).write(to: URL(fileURLWithPath: file))
        let output = try await ChildProcess.output(
            of: [try Repository.python(), Repository.fixture("sigv4.py"), file])
        return try JSONDecoder().decode([String].self, from: Data(output.utf8))
    }
}
