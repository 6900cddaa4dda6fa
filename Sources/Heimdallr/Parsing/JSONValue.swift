// The fields of a token's answer that the library does not know are of this type: part of what it offers.
@_exported public import enum WireText.JSONValue
