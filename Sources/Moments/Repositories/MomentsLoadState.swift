/// The loading state of a user's timeline: the timeline, its age, whether likes are pending, whether it is being
/// loaded, and the error of the last load.
///
/// The age counts from the last fetch. If the repository doesn't know the time of that fetch, for example after a
/// relaunch, the age counts from the last save.
public typealias MomentsLoadState = LoadState<MomentsDetails, MomentsRepoError>
