"""Figures to a collector of OpenTelemetry, as gauges by OTLP over HTTP: OTEL_EXPORTER_OTLP_ENDPOINT says where."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

PREFIX = "refinery."
FLUSH_MILLISECONDS = 10_000


class OtelTracker:
    """Gauges of one run. reader: hands the figures on."""

    def __init__(self, reader: MetricReader) -> None:
        self.provider = MeterProvider([reader])
        self.meter = self.provider.get_meter("refinery")
        self.gauges: dict[str, Any] = {}

    def log(self, figures: Mapping[str, float], step: int) -> None:
        """As `Tracker.log`. A gauge has no steps; the exporter notes the time."""
        for name, value in figures.items():
            if name not in self.gauges:
                self.gauges[name] = self.meter.create_gauge(PREFIX + name.replace("/", "."))
            self.gauges[name].set(value)

    def end(self, is_done: bool) -> None:
        """As `Tracker.end`; the gauge `refinery.done` is 1 for a run that ended well."""
        self.log({"done": float(is_done)}, 0)
        self.provider.force_flush(FLUSH_MILLISECONDS)
        self.provider.shutdown()


def open_tracker() -> OtelTracker:
    """Gauges for the collector that the environment names."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OtelTracker(PeriodicExportingMetricReader(OTLPMetricExporter()))
