//! Another window, another reader's preferences, a slower machine.

use serde_json::{Value, json};

use super::tab::Tab;

impl Tab<'_> {
    #[track_caller]
    pub(crate) fn viewport(&self, width: u32, height: u32) -> &Self {
        self.zoomed_viewport(width, height, 1)
    }

    /// A window of this size with the browser's zoom at `factor` × 100 %.
    #[track_caller]
    pub(crate) fn zoomed_viewport(&self, width: u32, height: u32, factor: u32) -> &Self {
        let metrics = json!({ "width": width / factor, "height": height / factor, "deviceScaleFactor": factor, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        self
    }

    /// The theme that the reader's system has: `light` or `dark`.
    #[track_caller]
    pub(crate) fn theme(&self, theme: &str) -> &Self {
        self.prefer("prefers-color-scheme", theme)
    }

    #[track_caller]
    pub(crate) fn reduced_motion(&self) -> &Self {
        self.prefer("prefers-reduced-motion", "reduce")
    }

    #[track_caller]
    fn prefer(&self, feature: &'static str, value: &str) -> &Self {
        self.media.borrow_mut().insert(feature, value.to_owned());
        let media = self.media.borrow();
        let features: Vec<Value> =
            media.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
        self
    }

    /// Makes the processor look this many times slower.
    #[track_caller]
    pub(crate) fn slow_processor(&self, factor: u32) -> &Self {
        self.call("Emulation.setCPUThrottlingRate", &json!({ "rate": factor }));
        self
    }

    /// How far the page is wider than the window, in CSS pixels.
    #[track_caller]
    pub(crate) fn sideways_overflow(&self) -> i64 {
        let root = "document.documentElement";
        self.eval(&format!("{root}.scrollWidth - {root}.clientWidth")).as_i64().expect("a number")
    }
}
