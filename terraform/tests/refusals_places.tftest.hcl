# What is refused of storage classes, launcher, perimeter and CDN, before anything is made.

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
    perimeter = { access_policy = "123" } # google_access is private
  }

  expect_failures = [var.perimeter]
}

run "perimeter_policy" {
  command = plan

  variables {
    google_access = "restricted"
    perimeter     = { access_policy = "organizations/1" }
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
