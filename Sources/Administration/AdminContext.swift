import HTTPServer

/// Facts about a request beside its message.
struct AdminContext: Sendable {
    /// Values in the path for the names of the route.
    let parameters: Router.Parameters
    /// Another site's page or a link led here, so a change needs a confirmation.
    var isForeign = false
}
