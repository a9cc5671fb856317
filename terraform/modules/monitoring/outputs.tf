output "dashboard" {
  description = "Full name of the dashboard."
  value       = google_monitoring_dashboard.funnel.id
}

output "alerts" {
  description = "Names of the alert policies."
  value = sort(concat(
    [for policy in google_monitoring_alert_policy.this : policy.display_name],
    [google_monitoring_alert_policy.out_of_memory.display_name],
  ))
}
