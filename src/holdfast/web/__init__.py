"""The page, and the service for programs: parse, call, show; nothing is worked out here."""
