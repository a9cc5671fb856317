# A budget only warns. --max_num_workers bounds the cost of a job, and only a person can stop it.
resource "google_billing_budget" "this" {
  for_each = var.budget == null ? {} : { this = var.budget }

  billing_account = each.value.billing_account
  display_name    = "${var.name} (${var.project_id})"

  budget_filter {
    projects        = ["projects/${var.project_number}"]
    calendar_period = "MONTH"
  }

  amount {
    specified_amount {
      currency_code = each.value.currency
      units         = tostring(each.value.monthly_amount)
    }
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1.0]

    content {
      threshold_percent = threshold_rules.value
      spend_basis       = "CURRENT_SPEND"
    }
  }

  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "FORECASTED_SPEND"
  }

  all_updates_rule {
    # At most five addresses are allowed here.
    monitoring_notification_channels = slice(local.channels, 0, min(5, length(local.channels)))
    disable_default_iam_recipients   = false
  }
}
