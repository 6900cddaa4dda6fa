// Unknown members of a token response have this type, so the library exports it.
@_exported public import enum WireText.JSONValue
