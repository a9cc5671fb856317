# What is refused before anything is made.

mock_provider "google" {
  override_during = plan
}

variables {
  project_id   = "example-project"
  region       = "europe-west4"
  alert_emails = ["data@example.org"]
  budget       = { billing_account = "012345-6789AB-CDEF01", monthly_amount = 5000 }
}

run "project_id" {
  command = plan

  variables {
    project_id = "My Project" # a name with capitals and a space
  }

  expect_failures = [var.project_id]
}

run "region_is_no_zone" {
  command = plan

  variables {
    region = "europe-west4-a" # a zone
  }

  expect_failures = [var.region]
}

run "region_is_no_multi_region" {
  command = plan

  variables {
    region = "EU" # a multi-region: the key is regional
  }

  expect_failures = [var.region]
}

run "name" {
  command = plan

  variables {
    name = "Refinery_1" # capitals and an underscore
  }

  expect_failures = [var.name]
}

run "bucket_prefix" {
  command = plan

  variables {
    bucket_prefix = "my_bucket" # an underscore
  }

  expect_failures = [var.bucket_prefix]
}

run "bucket_prefix_of_google" {
  command = plan

  variables {
    bucket_prefix = "my-google-data" # a name that Cloud Storage refuses
  }

  expect_failures = [var.bucket_prefix]
}

run "labels" {
  command = plan

  variables {
    labels = { Team = "Data" } # capitals
  }

  expect_failures = [var.labels]
}

run "staging_days" {
  command = plan

  variables {
    staging_days = 1 # files of a running job would go
  }

  expect_failures = [var.staging_days]
}

run "work_days" {
  command = plan

  variables {
    work_days = 3 # a run could not be resumed after a long weekend
  }

  expect_failures = [var.work_days]
}

run "reject_days" {
  command = plan

  variables {
    reject_days = 0 # kept for ever is not what 0 should mean
  }

  expect_failures = [var.reject_days]
}

run "soft_delete_days" {
  command = plan

  variables {
    soft_delete_days = 91 # more than Cloud Storage allows
  }

  expect_failures = [var.soft_delete_days]
}

run "corpus_retention_days" {
  command = plan

  variables {
    corpus_retention_days = -1 # a negative number
  }

  expect_failures = [var.corpus_retention_days]
}

run "key_rotation_days" {
  command = plan

  variables {
    key_rotation_days = 365 # too seldom
  }

  expect_failures = [var.key_rotation_days]
}

run "key_protection_level" {
  command = plan

  variables {
    key_protection_level = "EXTERNAL" # a key that Google does not hold
  }

  expect_failures = [var.key_protection_level]
}

run "workers_cidr_is_private" {
  command = plan

  variables {
    workers_cidr = "8.8.8.0/20" # public addresses
  }

  expect_failures = [var.workers_cidr]
}

run "workers_cidr_is_a_range" {
  command = plan

  variables {
    workers_cidr = "10.20.0.0" # an address, not a range
  }

  expect_failures = [var.workers_cidr]
}

run "workers_fit" {
  command = plan

  variables {
    workers_cidr = "10.20.0.0/27" # 28 addresses for 50 workers
  }

  expect_failures = [var.workers_cidr]
}

run "google_access" {
  command = plan

  variables {
    google_access = "internet" # no such way
  }

  expect_failures = [var.google_access]
}

run "launcher_users" {
  command = plan

  variables {
    launcher_users = ["allAuthenticatedUsers"] # everybody with an account
  }

  expect_failures = [var.launcher_users]
}

run "launcher_domain" {
  command = plan

  variables {
    launcher_users = ["domain:example.org"] # a whole domain
  }

  expect_failures = [var.launcher_users]
}

run "reader_users" {
  command = plan

  variables {
    reader_users = ["allUsers"] # everybody
  }

  expect_failures = [var.reader_users]
}

run "ci_wildcard" {
  command = plan

  variables {
    ci = { owner = "example", repository = "*", repository_id = "42" } # every repository of the owner
  }

  expect_failures = [var.ci]
}

run "ci_id" {
  command = plan

  variables {
    ci = { owner = "example", repository = "refinery", repository_id = "example/refinery" } # a name is no number
  }

  expect_failures = [var.ci]
}

run "ci_pull_requests" {
  command = plan

  variables {
    ci = { owner = "example", repository = "refinery", repository_id = "42", ref = "refs/pull/1/merge" } # anybody can open a pull request
  }

  expect_failures = [var.ci]
}

run "ci_quote" {
  command = plan

  variables {
    ci = { owner = "example", repository = "x' || true || '", repository_id = "42" } # a way around the condition
  }

  expect_failures = [var.ci]
}

run "alert_emails" {
  command = plan

  variables {
    alert_emails = ["nobody"] # no address
  }

  expect_failures = [var.alert_emails]
}

run "dead_letter_ratio" {
  command = plan

  variables {
    dead_letter_ratio = 1 # the alert would never fire
  }

  expect_failures = [var.dead_letter_ratio]
}

run "no_progress_minutes" {
  command = plan

  variables {
    no_progress_minutes = 1 # workers need longer to start
  }

  expect_failures = [var.no_progress_minutes]
}

run "worker_memory_ratio" {
  command = plan

  variables {
    worker_memory_ratio = 90 # a share, not per cent
  }

  expect_failures = [var.worker_memory_ratio]
}

run "budget_account" {
  command = plan

  variables {
    budget = { billing_account = "my account", monthly_amount = 10 } # no billing account
  }

  expect_failures = [var.budget]
}

run "budget_amount" {
  command = plan

  variables {
    budget = { billing_account = "012345-6789AB-CDEF01", monthly_amount = 0.5 } # half a unit
  }

  expect_failures = [var.budget]
}

run "public_domain" {
  command = plan

  variables {
    public_domain = "https://data.example.org" # an address, not a host name
  }

  expect_failures = [var.public_domain]
}

run "input_is_in_the_bucket" {
  command = plan

  variables {
    input = "/etc/*" # a leading slash
  }

  expect_failures = [var.input]
}

run "input_is_no_command" {
  command = plan

  variables {
    input = "x'; rm -rf ~; '" # a way out of the quotes
  }

  expect_failures = [var.input]
}

run "tokenizer_is_no_command" {
  command = plan

  variables {
    tokenizer = "a.json --runner local" # a way to flags
  }

  expect_failures = [var.tokenizer]
}

run "corpus" {
  command = plan

  variables {
    corpus = "Web 1" # a space in a path
  }

  expect_failures = [var.corpus]
}

run "image_tag" {
  command = plan

  variables {
    image_tag = "latest" # a tag that says nothing
  }

  expect_failures = [var.image_tag]
}

run "recipe" {
  command = plan

  variables {
    recipe = "recipes/my web.yaml" # two words in a shell
  }

  expect_failures = [var.recipe]
}

run "max_workers" {
  command = plan

  variables {
    max_workers = 0 # no worker
  }

  expect_failures = [var.max_workers]
}
