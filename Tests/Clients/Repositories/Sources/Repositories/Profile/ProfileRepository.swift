public import DataStore
public import Repository

/// A repository of the profiles of users, which the app only reads.
public typealias ProfileRepository = SyncedRepository<FetchSource<String, Profile, ProfileError>>

/// Returns a repository of the profiles of users.
public func profileRepository(_ client: any ProfileClient, store: any KeyValueStore) -> ProfileRepository {
  SyncedRepository("profile", store: store, fetch: client.profile(of:))
}
