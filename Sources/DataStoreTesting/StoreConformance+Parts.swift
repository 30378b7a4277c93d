internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about values in parts.
  static let partChecks = [
    Check("A value in parts is loaded and observed as it was saved") { harness in
      let store = try await harness.open()
      let observer = try await store.changes(of: albumKey).subscribe()
      var changes: [StoreChange<Album>] = []
      for value in Album.versions {
        let saved = try await store.save(value, for: albumKey)
        changes.append(.saved(albumKey, saved))
        try expect(await store.load(albumKey), is: saved, "load")
        let laterStore = try await harness.open()
        try expect(await laterStore.load(albumKey)?.value, is: value, "load after opening again")
        let entries = try await laterStore.observe(collection: albumKey.collection, as: Album.self).stored
        try expect(entries.map(\.stored.value), is: [value], "the observed values")
      }
      try expect(await read(changes.count, from: observer, on: harness), is: changes, "the changes")
    },
    Check("A value in parts that another store changed is loaded completely, and can be replaced") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      for (index, value) in Album.versions.enumerated() {
        let saved = try await (index % 2 == 0 ? store : other).save(value, for: albumKey)
        for store in [store, other] {
          let loaded = try await store.load(albumKey)
          try expect(loaded?.value, is: value, "load")
          try expect(loaded?.tag, is: saved.tag, "the tag")
        }
      }
    },
    Check("A save over a value in parts that another store has changed stores exactly what it saves") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      var value = Album.versions[1]
      try await store.save(value, for: albumKey)
      var othersValue = value
      othersValue.photos[150] = "changed by the other store"
      try await other.save(othersValue, for: albumKey)
      // The store hasn't loaded the change, and this one is in another part.
      value.photos[3] = "changed"
      try await store.save(value, for: albumKey)
      try expect(await harness.open().load(albumKey)?.value, is: value, "load")
    },
    Check("A value stored whole is loaded as a value in parts, and the next save stores it in parts") { harness in
      let whole = try await harness.open().save(WholeAlbum(Album.versions[1]), for: wholeAlbumKey)
      let store = try await harness.open()
      let loaded = try await store.load(albumKey)
      try expect(loaded?.value, is: Album.versions[1], "load")
      try expect(loaded?.tag, is: whole.tag, "the tag")
      try await store.save(Album.versions[2], for: albumKey)
      try expect(await harness.open().load(albumKey)?.value, is: Album.versions[2], "load after a save")
    },
    Check("Loading a value in parts as a whole one throws without a migration, and changes nothing") { harness in
      let saved = try await harness.open().save(Album.versions[1], for: albumKey)
      let isExpected = { (error: StoreError) in
        if case .migrationFailed(albumKey.keyName, from: 1, _) = error { true } else { false }
      }
      let store = try await harness.open()
      try await expectError("migrationFailed", from: "load", where: isExpected) { () throws(StoreError) in
        try await store.load(wholeAlbumKey)
      }
      let migrated = try await harness.open().load(migratedAlbumKey)
      try expect(migrated?.value, is: MigratedAlbum(title: "album", count: 200), "load with a migration")
      try expect(await harness.open().load(albumKey)?.tag, is: saved.tag, "the tag of the value in parts")
    },
    Check("A store reports the same size of a value as a store that is opened later") { harness in
      let store = try await harness.open()
      let separateWholeKey = StoreKey<WholeAlbum>("whole album")
      for value in Album.versions {
        var batch = StoreBatch()
        batch.save(value, for: albumKey)
        batch.save(WholeAlbum(value), for: separateWholeKey)
        let commit = try await store.commit(batch)
        // A store need not report sizes.
        guard let size = try await store.load(albumKey)?.byteCount else { return }
        for (name, byteCount) in commit.byteCounts {
          let size = name == albumKey.keyName ? size : try await store.load(separateWholeKey)?.byteCount
          try expect(byteCount, is: size, "the size in the commit")
        }
        let laterStore = try await harness.open()
        try expect(size, is: await laterStore.load(albumKey)?.byteCount, "the size of a value in parts")
        let entries = try await laterStore.observe(collection: albumKey.collection, as: Album.self).stored
        try expect(size, is: entries.first?.stored.byteCount, "the observed size")
        try expect(
          await store.load(separateWholeKey)?.byteCount,
          is: await laterStore.load(separateWholeKey)?.byteCount, "the size of a whole value")
      }
    },
    Check("A value in parts is removed by its key and with its collection") { harness in
      let store = try await harness.open()
      try await store.save(Album.versions[1], for: albumKey)
      try await store.remove(albumKey)
      try expect(await store.load(albumKey), is: nil, "load")
      try await store.save(Album.versions[2], for: albumKey)
      try await harness.open().removeAll(in: albumKey.collection)
      try expect(await harness.open().load(albumKey), is: nil, "load after opening again")
    },
  ]

  private static let albumKey = StoreKey<Album>("album", id: "parts")
  // The same name with other types, for the same value in other versions of a program.
  private static let wholeAlbumKey = StoreKey<WholeAlbum>(albumKey.keyName)
  private static let migratedAlbumKey = StoreKey<MigratedAlbum>(albumKey.keyName)

  /// A value in parts.
  struct Album: PartitionedValue, Hashable {
    var title: String
    var photos: [String]

    init(title: String, photos: [String]) {
      self.title = title
      self.photos = photos
    }

    init(head: String, elements: [String]) {
      self.init(title: head, photos: elements)
    }

    var head: String { title }
    var elements: [String] { photos }

    /// Values to save one after the other.
    ///
    /// Each differs from the previous one in its head, one element, the number of elements, all elements, or nothing.
    /// The first is empty, and the second has 200 photos.
    static let versions: [Album] = {
      let photos = (0..<200).map { "photo \($0) 名字 \"" }
      var versions = [Album(title: "", photos: []), Album(title: "album", photos: photos)]
      var album = versions[1]
      let changes: [(inout Album) -> Void] = [
        { $0.photos[77] = "changed" }, { $0.title = "renamed" }, { $0.photos.insert("inserted", at: 3) },
        { $0.photos.removeLast(150) }, { $0.photos = $0.photos.reversed() }, { _ in }, { $0.photos = [] },
        { $0.photos = photos },
      ]
      for change in changes {
        change(&album)
        versions.append(album)
      }
      return versions
    }()
  }

  /// An album that is stored whole.
  private struct WholeAlbum: Codable, Hashable {
    var title: String
    var photos: [String]

    init(_ album: Album) {
      (title, photos) = (album.title, album.photos)
    }
  }

  /// A later schema of the album, stored whole.
  private struct MigratedAlbum: VersionedValue, Hashable {
    /// The form in which the migration receives a value in parts.
    private struct Parts: Codable {
      let head: String
      let elements: [String]
    }

    static let schema = StoreSchema(
      version: 2,
      migrations: [
        StoreMigration(from: 1, decoding: Parts.self) { MigratedAlbum(title: $0.head, count: $0.elements.count) }
      ])

    var title: String
    var count: Int
  }
}
