// swift-tools-version: 6.2

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "Repositories",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Repositories", targets: ["Repositories"]),
    .library(name: "IssueTracker", targets: ["IssueTracker"]),
  ],
  traits: [
    .trait(name: "SQLite", description: "Also kills the editors of a store in a database file."),
    .trait(name: "PostgreSQL", description: "Also kills the editors of a store on a PostgreSQL server."),
  ],
  dependencies: [
    .package(
      name: "Moments", path: "../../..",
      traits: [
        .trait(name: "SQLite", condition: .when(traits: ["SQLite"])),
        .trait(name: "PostgreSQL", condition: .when(traits: ["PostgreSQL"])),
      ])
  ],
  targets: [
    .target(
      name: "Repositories",
      dependencies: [
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      swiftSettings: swiftSettings),
    .target(
      name: "IssueTracker",
      dependencies: [
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "TrackerChild",
      dependencies: [
        "IssueTracker",
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "MulticastTesting", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      path: "Tests/TrackerChild", swiftSettings: swiftSettings),
    .target(
      name: "Editor",
      dependencies: [
        "IssueTracker",
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "MulticastTesting", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      path: "Tests/Editor", swiftSettings: swiftSettings),
    .executableTarget(
      name: "EditorV1",
      dependencies: ["Editor", "IssueTracker", .product(name: "Repository", package: "Moments")],
      path: "Tests/EditorV1", swiftSettings: swiftSettings),
    .executableTarget(
      name: "EditorV2",
      dependencies: [
        "Editor", "IssueTracker",
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      path: "Tests/EditorV2", swiftSettings: swiftSettings),
    .testTarget(
      name: "IssueTrackerTests",
      dependencies: [
        "EditorV1", "EditorV2", "IssueTracker", "TrackerChild",
        .product(name: "DataStore", package: "Moments"),
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "MulticastTesting", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RepositoriesTests",
      dependencies: [
        "Repositories",
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "MulticastTesting", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
        .product(name: "RepositoryTesting", package: "Moments"),
      ],
      swiftSettings: swiftSettings),
  ]
)
