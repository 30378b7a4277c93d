public import Repository

/// The loading state of a user's timeline: the timeline, its age, whether likes are pending, whether it is being
/// loaded, and the error of the last load.
public typealias MomentsLoadState = LoadState<MomentsDetails, MomentsRepoError>
