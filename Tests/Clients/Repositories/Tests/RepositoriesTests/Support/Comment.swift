import Repositories

/// The comment of a post, as opposed to Swift Testing's.
typealias Comment = Repositories.Comment
