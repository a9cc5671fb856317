# Copy to terraform.tfvars and change. Only the first two and alert_emails have no default.
project_id   = "my-corpus-project"
region       = "europe-west4"
alert_emails = ["data-team@example.org"]

launcher_users = ["group:data-team@example.org"]
reader_users   = ["group:training-team@example.org"]
on_call_users  = ["group:on-call@example.org"]

budget = {
  billing_account = "012345-6789AB-CDEF01"
  monthly_amount  = 5000
}

ci = {
  owner         = "example"
  repository    = "refinery"
  repository_id = "123456789"
}

labels = { team = "data" }

# public_domain = "data.example.org"   # a public bucket behind Cloud CDN, for volunteers
