public import Repository

/// What there is to show of a user's timeline: whether it loads, its age, whether likes are pending, what failed.
public typealias MomentsLoadState = LoadState<MomentsDetails, MomentsRepoError>
