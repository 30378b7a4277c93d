import Repository

/// The key of a value that belongs to a user.
struct UserKey: RepositoryKey {
  let user: String
  let id: String

  var userID: String? { user }
  var storeID: String { "\(user)/\(id)" }

  init(_ user: String, _ id: String) {
    (self.user, self.id) = (user, id)
  }

  init?(storeID: String) {
    let parts = storeID.split(separator: "/")
    guard parts.count == 2 else { return nil }
    self.init(String(parts[0]), String(parts[1]))
  }
}
