import Repositories

/// The comment of a post, and not that of a test.
typealias Comment = Repositories.Comment
