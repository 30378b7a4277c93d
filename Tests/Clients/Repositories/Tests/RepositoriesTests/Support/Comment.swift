import Repositories

/// A comment on a post, as opposed to Swift Testing's `Comment`.
typealias Comment = Repositories.Comment
