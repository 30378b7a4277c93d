public import DataStore
public import Repository

/// Returns a repository of the drafts that only this device has, by the id of the post.
public func draftsRepository(store: any KeyValueStore) -> LocalRepository<String, Draft> {
  LocalRepository("drafts", default: Draft(), store: store)
}
