import ArgumentParser
import HTTPMessage
import WireText

struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Show which rule and which token a request would get.",
        discussion: """
            `heimdallr-proxy why ID` tells what became of one of the last 200 requests. The ID stands in the log, in the \
            proxy's answers, and in `heimdallr-proxy requests`.

            With a method and a URL, sends nothing. Prints the upstream of the request, its destination, the client whose token it would carry, the \
            age of that token, and the client's last error.

            The exit code is 0 when the request would be forwarded, 3 when the proxy would refuse it (no rule \
            covers it, or its client has no token and can't get one now), and 1 when no proxy is running. With \
            --exit-zero it is 0 instead of 3, for scripts that only read.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(help: "The request's method, such as GET; or alone, the ID of a request that has ended.")
    var method: String

    @Argument(help: "The URL as a program asks the proxy for it: http://HOST/PATH.")
    var url: String?

    @Option(name: .customLong("field"), help: "A header field of the request, as NAME=VALUE. May be repeated.")
    var fields: [String] = []

    @Flag(help: "Print JSON for programs.")
    var json = false

    @Flag(help: "Exit with 0 even if the request would be refused.")
    var exitZero = false

    func validate() throws {
        if let field = fields.first(where: { !$0.dropFirst().contains("=") }) {
            throw ValidationError("write --field NAME=VALUE, not --field \(field)")
        }
        if method == "CONNECT" {
            throw ValidationError(
                "a CONNECT tunnel carries no token, so `why` does not explain it: "
                    + "`heimdallr-proxy check` lists the allowed tunnels")
        }
        guard let url else {
            // Any other word may be an ID.
            let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
            guard method.contains("://") || methods.contains(method) else { return }
            let example = method.contains("://") ? method : "http://HOST/PATH"
            throw ValidationError("write the method, then the whole URL: heimdallr-proxy why GET \(example)")
        }
        guard WebURL.scheme(of: url) != nil else {
            if url.contains("://") {
                throw ValidationError(
                    "the URL must begin with http:// or https://: heimdallr-proxy why GET http://HOST/PATH")
            }
            let example = method.contains("://") ? method : url.hasPrefix("/") ? "http://HOST\(url)" : "http://\(url)"
            throw ValidationError("write the method, then the whole URL: heimdallr-proxy why GET \(example)")
        }
    }

    func run() throws {
        let word = PercentEncoding.uri.encode(method)
        let query = url.map { "method=\(word)&url=\(PercentEncoding.uri.encode($0))" } ?? "id=\(word)"
        try options.perform(
            "GET",
            "/why?" + query + fields.map { "&field=\(PercentEncoding.uri.encode($0))" }.joined()
                + (json ? "&format=json" : ""),
            exitZero: exitZero)
    }
}
