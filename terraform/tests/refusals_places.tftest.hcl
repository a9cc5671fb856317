# What is refused of storage classes, launcher, perimeter and CDN, of fractions and of reserved names, before anything is made.

mock_provider "google" {
  override_during = plan
}

variables {
  project_id   = "example-project"
  region       = "europe-west4"
  alert_emails = ["data@example.org"]
  budget       = { billing_account = "012345-6789AB-CDEF01", monthly_amount = 5000 }
}

run "raw_cold_class" {
  command = plan

  variables {
    raw_cold = { days = 30, storage_class = "STANDARD" } # not colder
  }

  expect_failures = [var.raw_cold]
}

run "raw_cold_days" {
  command = plan

  variables {
    raw_cold = { days = 0, storage_class = "NEARLINE" } # while it is read
  }

  expect_failures = [var.raw_cold]
}

run "launcher_hours" {
  command = plan

  variables {
    launcher = { hours = 169 } # more than Cloud Run takes
  }

  expect_failures = [var.launcher]
}

run "launcher_memory" {
  command = plan

  variables {
    launcher = { memory = "64G" }
  }

  expect_failures = [var.launcher]
}

run "perimeter_without_restricted_access" {
  command = plan

  variables {
    perimeter = { access_policy = "123", identities = ["user:owner@example.org"] } # google_access is private
  }

  expect_failures = [var.perimeter]
}

run "perimeter_policy" {
  command = plan

  variables {
    google_access = "restricted"
    perimeter     = { access_policy = "organizations/1", identities = ["user:owner@example.org"] }
  }

  expect_failures = [var.perimeter]
}

run "public_rate" {
  command = plan

  variables {
    public_rate = 0
  }

  expect_failures = [var.public_rate]
}

run "soft_delete_fraction" {
  command = plan

  variables {
    soft_delete_days = 7.5 # half a day
  }

  expect_failures = [var.soft_delete_days]
}

run "retention_fraction" {
  command = plan

  variables {
    corpus_retention_days = 0.5 # half a day
  }

  expect_failures = [var.corpus_retention_days]
}

run "rotation_fraction" {
  command = plan

  variables {
    key_rotation_days = 1.5 # seconds that no whole days give
  }

  expect_failures = [var.key_rotation_days]
}

run "no_progress_fraction" {
  command = plan

  variables {
    no_progress_minutes = 10.5 # half a minute
  }

  expect_failures = [var.no_progress_minutes]
}

run "launcher_hours_fraction" {
  command = plan

  variables {
    launcher = { hours = 1.5 } # half an hour
  }

  expect_failures = [var.launcher]
}

run "name_reserved_by_pools" {
  command = plan

  variables {
    name = "gcp-corpora" # no identity pool may begin so
  }

  expect_failures = [var.name]
}

run "name_reserved_by_buckets" {
  command = plan

  variables {
    name = "my-google" # no bucket may contain it
  }

  expect_failures = [var.name]
}

run "prefix_of_bills_of_materials" {
  command = plan

  variables {
    bucket_prefix = "artifactanalysis-x" # CI may administer such buckets
  }

  expect_failures = [var.bucket_prefix]
}

run "workers_cidr_host_bits" {
  command = plan

  variables {
    workers_cidr = "10.20.0.1/20" # an address inside the range
  }

  expect_failures = [var.workers_cidr]
}

run "workers_cidr_beyond_private" {
  command = plan

  variables {
    workers_cidr = "172.16.0.0/8" # most of it is public
  }

  expect_failures = [var.workers_cidr]
}

run "workers_cidr_beyond_private_2" {
  command = plan

  variables {
    workers_cidr = "192.168.0.0/15" # half of it is public
  }

  expect_failures = [var.workers_cidr]
}

run "launcher_whole_pool" {
  command = plan

  variables {
    launcher_users = ["principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*"] # everybody whom a platform knows
  }

  expect_failures = [var.launcher_users]
}

run "reader_whole_cluster" {
  command = plan

  variables {
    reader_users = ["serviceAccount:example-project.svc.id.goog"] # no service account of it
  }

  expect_failures = [var.reader_users]
}

run "perimeter_locks_out" {
  command = plan

  variables {
    google_access = "restricted"
    perimeter     = { access_policy = "123", identities = [] } # not even whoever applies
  }

  expect_failures = [var.perimeter]
}

run "perimeter_kubernetes" {
  command = plan

  variables {
    google_access = "restricted"
    perimeter     = { access_policy = "123", identities = ["serviceAccount:p.svc.id.goog[a/b]"] } # the service refuses it
  }

  expect_failures = [var.perimeter]
}

run "perimeter_project_names" {
  command = plan

  variables {
    google_access = "restricted"
    perimeter     = { access_policy = "123", identities = ["user:a@example.org"], read_projects = ["other"] } # a name, no number
  }

  expect_failures = [var.perimeter]
}

run "on_call_users" {
  command = plan

  variables {
    on_call_users = ["domain:example.org"] # a whole domain
  }

  expect_failures = [var.on_call_users]
}
